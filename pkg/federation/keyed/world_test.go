package keyed_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/weir-dev/weir/pkg/federation/coordinator/memory"
	"github.com/weir-dev/weir/pkg/federation/keyed"
	"github.com/weir-dev/weir/pkg/federation/keys"
	"github.com/weir-dev/weir/pkg/federation/ledger"
	"github.com/weir-dev/weir/pkg/limiter"
	"github.com/weir-dev/weir/pkg/monotonic"
	"github.com/weir-dev/weir/pkg/store"
)

var errCut = &store.UnavailableError{Store: "test", Cause: errors.New("cut off")}

// A hub is a coordinator in the hands of a test: it can be replaced, be away, and lose its
// memory.
type hub struct {
	ahead time.Duration // of the clock of the test

	mu   sync.Mutex
	term int64
	to   keyed.Coordinator // nil while it is away
	got  received
}

// received is what arrived at a hub.
type received struct{ messages, asks, largest int }

func newHub(ahead time.Duration) *hub {
	h := &hub{ahead: ahead}
	h.restart(true)
	return h
}

func (h *hub) now() limiter.Instant { return limiter.Instant(time.Now().Add(h.ahead).UnixMicro()) }

// restart replaces the coordinator by one that knows nothing.
func (h *hub) restart(first bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.term++
	h.to = memory.New(memory.Options{Clock: h.now, Term: h.term, First: first})
}

func (h *hub) stop() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.to = nil
}

// seen returns what arrived.
func (h *hub) seen() received {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.got
}

// replace puts another coordinator in the place of the one that is there, which it returns.
func (h *hub) replace(by func(keyed.Coordinator) keyed.Coordinator) keyed.Coordinator {
	h.mu.Lock()
	defer h.mu.Unlock()
	before := h.to
	h.to = by(before)
	return before
}

// receive counts a message.
func (h *hub) receive(asks int) keyed.Coordinator {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.to != nil {
		h.got = received{messages: h.got.messages + 1, asks: h.got.asks + asks, largest: max(h.got.largest, asks)}
	}
	return h.to
}

// A line is the way of one region to the hub.
type line struct {
	hub *hub

	mu          sync.Mutex
	there, back time.Duration
	cut         bool // nothing arrives, and calls take until they are given up
	lose        func() bool
	deaf        bool // answers do not arrive
}

func (l *line) set(change func(*line)) {
	l.mu.Lock()
	defer l.mu.Unlock()
	change(l)
}

// state returns what happens to the message that is sent now.
func (l *line) state() (there, back time.Duration, cut, deaf bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.there, l.back, l.cut || l.lose != nil && l.lose(), l.deaf || l.lose != nil && l.lose()
}

// ApplyKeys implements keyed.Coordinator.
func (l *line) ApplyKeys(ctx context.Context, id string, p ledger.Params, r keys.Request) (keys.Reply, error) {
	there, back, cut, deaf := l.state()
	if err := pass(ctx, there); err != nil {
		return keys.Reply{}, err
	}
	if cut {
		<-ctx.Done()
		return keys.Reply{}, ctx.Err()
	}
	to := l.hub.receive(len(r.Asks))
	if to == nil {
		return keys.Reply{}, errCut
	}
	reply, err := to.ApplyKeys(ctx, id, p, r)
	if err != nil {
		return reply, err
	}
	if deaf {
		<-ctx.Done()
		return keys.Reply{}, ctx.Err()
	}
	return reply, pass(ctx, back)
}

func pass(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

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
	hub     *hub
	params  ledger.Params
	lines   []*line
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
	w := &town{t: t, hub: newHub(7 * time.Millisecond), params: p, admitted: map[place]int64{}, refused: map[place]int64{}}
	clock := monotonic.Process
	for i, n := range names {
		l := &line{hub: w.hub, there: trip / 2, back: trip / 2}
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
	at := place{hash, int64(w.hub.now()) / int64(w.params.Window)}
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
	now := int64(w.hub.now())
	rest := int64(w.params.Window) - now%int64(w.params.Window)
	time.Sleep(time.Duration(rest) * time.Microsecond)
}
