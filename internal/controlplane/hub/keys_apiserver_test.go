package hub

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"sync"
	"testing"
	"time"

	"github.com/weir-dev/weir/pkg/federation/coordinator/kubernetes"
	"github.com/weir-dev/weir/pkg/federation/keys"
	"github.com/weir-dev/weir/pkg/federation/ledger"
	"github.com/weir-dev/weir/pkg/limiter"
	"github.com/weir-dev/weir/pkg/store"
)

// weighed is a Journal that measures what is written.
type weighed struct {
	kubernetes.Journal
	mu      sync.Mutex
	writes  int
	longest int // record, in bytes
	spent   time.Duration
}

func (w *weighed) Save(ctx context.Context, id string, r kubernetes.Record, version string) (string, error) {
	text, err := json.Marshal(r)
	if err != nil {
		return "", err
	}
	began := time.Now()
	version, err = w.Journal.Save(ctx, id, r, version)
	w.mu.Lock()
	defer w.mu.Unlock()
	w.writes, w.longest, w.spent = w.writes+1, max(w.longest, len(text)), w.spent+time.Since(began)
	return version, err
}

// TestWritesForKeysDoNotGrowWithTheirNumberOnAnAPIServer asks for units of all keys in turn, as
// fast as the coordinator answers, whose record is on a real API server.
func TestWritesForKeysDoNotGrowWithTheirNumberOnAnAPIServer(t *testing.T) {
	world := newWorld(t)
	span := time.Second
	if text := os.Getenv("WEIR_KEYS_TIME"); text != "" {
		var err error
		if span, err = time.ParseDuration(text); err != nil {
			t.Fatal(err)
		}
	}
	for _, c := range []struct {
		window limiter.Micros
		most   float64 // writes a second, as docs/federation.md says
	}{{limiter.Second, 50}, {60 * limiter.Second, 4}} {
		for _, n := range []int{100, 10_000, 100_000} {
			window := time.Duration(c.window) * time.Microsecond
			t.Run(fmt.Sprintf("%d keys in windows of %v", n, window), func(t *testing.T) {
				id := fmt.Sprintf("shop/%d-%d", n, c.window)
				kept := &weighed{Journal: NewJournal(world.maps)}
				births := NewBirths(world.maps)
				births.Begin(true)
				o := kubernetes.Options{Journal: kept, Births: births, Clock: func() limiter.Instant { return limiter.Instant(time.Now().UnixMicro()) }}
				granted, asked := askInTurn(t, kubernetes.New(o), id, n, c.window, span)
				kept.mu.Lock()
				defer kept.mu.Unlock()
				t.Logf("%.0f asks/s, %.0f granted/s: %.1f writes/s of %v, the longest of %d bytes", float64(asked)/span.Seconds(), float64(granted)/span.Seconds(),
					float64(kept.writes)/span.Seconds(), (kept.spent / time.Duration(kept.writes)).Round(100*time.Microsecond), kept.longest)
				if most := c.most*span.Seconds() + 3; float64(kept.writes) > most || kept.longest > 32<<10 { // the first take the budget over
					t.Errorf("%d writes of up to %d bytes, want fewer than %.0f", kept.writes, kept.longest, most)
				}
			})
		}
	}
}

// askInTurn asks for units of n keys in turn for a time, in messages as full as may be, and returns how many
// units were granted, and how many asks it made.
func askInTurn(t *testing.T, c *kubernetes.Coordinator, id string, n int, window limiter.Micros, span time.Duration) (granted, asked int64) {
	p := ledger.Params{
		Limit: 100, Window: window, Strategy: ledger.FirstCome, Block: 10, Keys: ledger.MaxKeys,
		Members: []ledger.Member{{Name: "a", Weight: 1, Borrowing: -1}},
	}
	hashes := make([]string, n)
	for i := range hashes {
		hashes[i] = store.HashValue(fmt.Sprint(i))
	}
	var all sync.WaitGroup
	var mu sync.Mutex
	const askers = 4
	began := time.Now()
	for from := range askers {
		all.Go(func() {
			for at := from; time.Since(began) < span; at += askers {
				r := keys.Request{Member: "a"}
				for i := range min(n, keys.MaxAsks) {
					r.Asks = append(r.Asks, keys.KeyAsk{Hash: hashes[(at*keys.MaxAsks+i)%n], Ask: keys.Ask{Min: 1, Want: 4}})
				}
				reply, err := c.ApplyKeys(t.Context(), id, p, r)
				if err != nil {
					t.Error(err)
					return
				}
				mu.Lock()
				asked += int64(len(r.Asks))
				for _, g := range reply.Grants {
					granted += g.Units
				}
				mu.Unlock()
			}
		})
	}
	all.Wait()
	return granted, asked
}
