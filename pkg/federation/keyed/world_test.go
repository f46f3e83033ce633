package keyed_test

import (
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/weir-dev/weir/internal/testing/federationtest"
	"github.com/weir-dev/weir/pkg/federation/keyed"
	"github.com/weir-dev/weir/pkg/federation/ledger"
	"github.com/weir-dev/weir/pkg/limiter"
	"github.com/weir-dev/weir/pkg/monotonic"
	"github.com/weir-dev/weir/pkg/store"
)

// names are of the members.
var names = []string{"a", "b", "c"}

func params(limit int64, window time.Duration) ledger.Params {
	p := ledger.Params{Limit: limit, Window: limiter.Micros(window.Microseconds()), Block: 1}
	for _, n := range names {
		p.Members = append(p.Members, ledger.Member{Name: n, Weight: 1, Borrowing: -1})
	}
	return p
}

// A town is three regions of one budget, and an auditor.
type town struct {
	t       *testing.T
	hub     *federationtest.Hub
	params  ledger.Params
	lines   []*federationtest.Line
	regions []*keyed.Region

	mu       sync.Mutex
	admitted map[place]int64
	refused  map[place]int64
}

// A place is a key in a window of the coordinator's clock.
type place struct {
	hash  string
	index int64
}

// A slice is what a region has of each value: index is the window.
type slice struct{ index, units, until int64 }

// Slice implements keyed.Slices.
func (s *slice) Slice() (index, units, until int64) { return s.index, s.units, s.until }

// newTown returns one, in which messages take that long there and back. Slices are of the
// first regions.
func newTown(t *testing.T, p ledger.Params, trip time.Duration, change func(*keyed.Config), slices ...keyed.Slices) *town {
	t.Helper()
	w := &town{t: t, hub: federationtest.NewHub(7 * time.Millisecond), params: p, admitted: map[place]int64{}, refused: map[place]int64{}}
	clock := monotonic.Process
	for i, n := range names {
		l := federationtest.NewLine(w.hub, trip/2)
		cfg := keyed.Config{ID: "shop/users", Member: n, Params: p, Patience: 100 * time.Millisecond, Timeout: 300 * time.Millisecond, Clock: clock}
		change(&cfg)
		if err := cfg.Validate(); err != nil {
			t.Fatal(err)
		}
		var own keyed.Slices
		if i < len(slices) {
			own = slices[i]
		}
		w.lines, w.regions = append(w.lines, l), append(w.regions, keyed.New(cfg, l, own))
	}
	t.Cleanup(func() {
		for _, r := range w.regions {
			r.Close()
		}
	})
	return w
}

func plain(*keyed.Config) {}

// ask takes units of a key in a region, and spends them at once. It returns how many.
func (w *town) ask(region, key int, least, want int64) int64 {
	hash := fmt.Sprint("k", key)
	c := limiter.Command{Op: limiter.Take, Min: least, Want: want}
	res, err := w.regions[region].Apply(w.t.Context(), store.Key{Hash: hash}, limiter.Params{Rates: []limiter.Rate{{Limit: w.params.Limit, Window: w.params.Window}}}, c)
	if err != nil {
		if !errors.As(err, new(*store.UnavailableError)) {
			w.t.Errorf("%v", err)
		}
		return 0
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	at := place{hash, int64(w.hub.Now()) / int64(w.params.Window)}
	if res.Granted == 0 {
		w.refused[at] += want
		if res.RetryAfter <= 0 && res.Reason != limiter.TooLarge {
			w.t.Errorf("refused without an instant to come back: %+v", res)
		}
		return 0
	}
	if res.Granted < least || res.Granted > want || res.ExpiresIn <= 0 || res.Windows.Open[0].Index != at.index {
		w.t.Errorf("%d to %d units of window %d are %+v", least, want, at.index, res)
	}
	w.admitted[at] += res.Granted
	return res.Granted
}

// requireWithin checks Δ = 0 for every key in every window.
func (w *town) requireWithin() {
	w.t.Helper()
	w.mu.Lock()
	defer w.mu.Unlock()
	for at, n := range w.admitted {
		if most := w.params.LimitOf(at.hash); n > most {
			w.t.Errorf("%d units of %s in window %d, want at most %d", n, at.hash, at.index, most)
		}
	}
}

// of returns what was admitted of a key in all windows.
func (w *town) of(key int) (sum int64) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for at, n := range w.admitted {
		if at.hash == fmt.Sprint("k", key) {
			sum += n
		}
	}
	return sum
}

// nextWindow waits for the window after this one of the coordinator's clock.
func (w *town) nextWindow() {
	now := int64(w.hub.Now())
	rest := int64(w.params.Window) - now%int64(w.params.Window)
	time.Sleep(time.Duration(rest) * time.Microsecond)
}
