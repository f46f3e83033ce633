package enforce_test

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weir-dev/weir/internal/sidecar/enforce"
	"github.com/weir-dev/weir/pkg/limiter"
	"github.com/weir-dev/weir/pkg/policy"
	"github.com/weir-dev/weir/pkg/store"
	"github.com/weir-dev/weir/pkg/store/memory"
	"github.com/weir-dev/weir/pkg/twotier"
)

// A watched store notes whether it is asked for anything after it was closed off.
type watched struct {
	twotier.Store
	off  atomic.Bool
	late atomic.Int64 // takes since then
}

func (w *watched) Apply(ctx context.Context, key store.Key, p limiter.Params, c limiter.Command) (limiter.Result, error) {
	if w.off.Load() && c.Op == limiter.Take {
		w.late.Add(1)
	}
	return w.Store.Apply(ctx, key, p, c)
}

// stock opens stores by their address.
type stock map[string]*twotier.Breaker

func (s stock) Open(of policy.Store) (twotier.Store, error) { return s[of.Address], nil }
func (stock) Budget() twotier.Store                         { return nil }
func (stock) Retain(map[policy.Store]bool)                  {}

// TestAPolicyMovesBetweenStoresUnderLoad moves a policy as the controller does, while
// each sidecar of a fleet has more requests than the fleet may admit. The new store's
// clock is years ahead, so that a window shows its store.
func TestAPolicyMovesBetweenStoresUnderLoad(t *testing.T) {
	const (
		sidecars = 6
		limit    = 200
		length   = 100 * limiter.Millisecond
		windows  = 4 // before and after the move
		ahead    = 1_000_000 * hour
	)
	begun := time.Now()
	clock := func(offset limiter.Micros) func() limiter.Instant {
		return func() limiter.Instant {
			return limiter.Instant(400_000 * hour).Add(offset + limiter.Micros(time.Since(begun).Microseconds()))
		}
	}
	for _, mode := range []policy.ConsistencyMode{policy.Leased, policy.CachedDeny, policy.Strict} {
		t.Run(string(mode), func(t *testing.T) {
			old := &watched{Store: memory.New(memory.Options{Clock: clock(0), First: true})}
			next := &watched{Store: memory.New(memory.Options{Clock: clock(ahead), First: true})}
			stores := stock{"old:1": twotier.NewBreaker(old), "new:1": twotier.NewBreaker(next)}
			p := policyOf(limitOf("all", limit))
			p.Limits[0].Rates[0].Window = length
			p.Store = policy.Store{Type: policy.RedisStore, Address: "old:1"}
			if p.Consistency.Mode = mode; mode != policy.Leased {
				p.Consistency = policy.Consistency{Mode: mode}
			}
			fleet := make([]*enforce.Enforcer, sidecars)
			for i := range fleet {
				fleet[i] = newEnforcer(t, nil, func(c *enforce.Config) { c.Stores = stores })
				apply(t, fleet[i], p)
			}

			var mu sync.Mutex
			admitted := map[int64]int64{} // by window
			var moved atomic.Bool         // the old store is drained
			var stale, drained atomic.Int64
			ctx, stop := context.WithCancel(t.Context())
			var wait sync.WaitGroup
			for _, e := range fleet {
				wait.Go(func() {
					for ctx.Err() == nil {
						before := moved.Load()
						d, err := e.Check(context.Background(), enforce.Query{Policy: "checkout", Limit: "all", Cost: 1})
						switch {
						case err != nil:
							t.Error(err)
							return
						case d.Source == twotier.FromDrain:
							drained.Add(1)
						case d.Allowed:
							index := d.Windows.Open[0].Index
							if before && index < int64(ahead)/int64(length) {
								stale.Add(1)
							}
							mu.Lock()
							admitted[index]++
							mu.Unlock()
						}
					}
				})
			}
			pass := func(windows int) { <-time.After(time.Duration(windows) * time.Duration(length) * time.Microsecond) }
			all := func() {
				for _, e := range fleet {
					apply(t, e, p)
				}
			}
			pass(windows)
			p.Draining, p.Generation = true, 2
			all()
			moved.Store(true)
			old.off.Store(true)
			since := clock(ahead)()
			p.Draining, p.Generation, p.Since = false, 3, since
			p.Store.Address = "new:1"
			all()
			pass(windows)
			stop()
			wait.Wait()

			if old.late.Load() > 0 {
				t.Errorf("the old store was asked %d times after it was drained", old.late.Load())
			}
			if stale.Load() > 0 {
				t.Errorf("%d requests were admitted on the word of the old store after it was drained", stale.Load())
			}
			var byOld, byNew int64
			for index, n := range admitted {
				if n > limit {
					t.Errorf("window %d: %d admitted, limit %d", index, n, limit)
				}
				w := limiter.Rate{Limit: limit, Window: length}.WindowAt(limiter.Instant(index * int64(length)))
				switch {
				case w.Start() < since-limiter.Instant(ahead/2):
					byOld += n
				case w.Start() < since:
					t.Errorf("%d admitted in a window of the new store that began before it took over", n)
				default:
					byNew += n
				}
			}
			if byOld < limit || byNew < limit {
				t.Errorf("the old store admitted %d and the new one %d: one of them did not serve", byOld, byNew)
			}
		})
	}
}

// TestADrainIsOverWhenItsLastDecisionIs holds a decision inside a store while the
// policy begins to drain: Apply returns after it, since its caller may then let another
// store serve.
func TestADrainIsOverWhenItsLastDecisionIs(t *testing.T) {
	entered, release := make(chan struct{}), make(chan struct{})
	only := &engine{closed: make(chan struct{})}
	only.acquire = func(string, int64) (twotier.Decision, error) {
		close(entered)
		<-release
		return twotier.Decision{Allowed: true}, nil
	}
	e := newEnforcer(t, nil, func(c *enforce.Config) {
		c.NewLimiter = func(twotier.Config, twotier.Store) (enforce.Limiter, error) { return only, nil }
	})
	p := policyOf(limitOf("all", 10))
	apply(t, e, p)
	var decisions sync.WaitGroup
	decisions.Go(func() { admit(t, e, 1, "/") })
	defer decisions.Wait()
	<-entered
	applied := make(chan struct{})
	go func() {
		p.Draining = true
		apply(t, e, p)
		close(applied)
	}()
	select {
	case <-applied:
		t.Error("it was drained under a decision")
		close(release)
	case <-time.After(50 * time.Millisecond):
		close(release)
		<-applied
	}
}

func TestADrainedPolicyRefusesAndSaysWhy(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := newEnforcer(t, newStore(frozen))
		p := policyOf(limitOf("all", 10))
		p.OnStoreUnavailable = policy.Allow
		apply(t, e, p)
		admit(t, e, 1, "/") // has credits in hand
		p.Draining, p.Generation = true, 2
		apply(t, e, p)
		v, err := e.Decide(context.Background(), get("/"))
		if err != nil || v.Allowed || v.Refusal.Cause != enforce.StoreDraining {
			t.Errorf("got %+v, %v", v, err)
		}
		synctest.Wait() // what was in hand is back
		p.Draining, p.Generation = false, 3
		apply(t, e, p) // the move was taken back
		if got := admit(t, e, 20, "/"); got != 9 {
			t.Errorf("admitted %d, want the 9 that are left", got)
		}
		e.Close(t.Context())
	})
}

// TestRowsSayWhichStoreGrantedThem, by the instant from which it serves.
func TestRowsSayWhichStoreGrantedThem(t *testing.T) {
	windows := &limiter.Windows{N: 1}
	windows.Open[0] = limiter.OpenWindow{Rate: limiter.Rate{Limit: 9, Window: hour}, Index: 5}
	e := newEnforcer(t, nil, scripted(func(string, int64) (twotier.Decision, error) {
		return twotier.Decision{Allowed: true, Windows: windows}, nil
	}))
	for _, since := range []limiter.Instant{0, 42} {
		p := policyOf(limitOf("all", 9))
		p.Since = since
		apply(t, e, p)
		admit(t, e, 1, "/")
	}
	var got []int64
	for _, row := range e.Report(time.Now(), sessions.Add(1))[0].GetWindows() {
		got = append(got, row.GetSinceMicros())
	}
	if !slices.Equal(got, []int64{0, 42}) {
		t.Errorf("rows are of the stores that serve since %v, want 0 and 42", got)
	}
}
