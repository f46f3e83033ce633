package twotier

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weir-dev/weir/internal/testing/seeds"
	"github.com/weir-dev/weir/pkg/limiter"
	"github.com/weir-dev/weir/pkg/store"
)

// partly is a store whose parts can be away.
type partly struct {
	*fakeStore
	away  map[store.Part]bool // guarded by the fake's mu
	calls map[store.Scope]int
}

func newPartly() *partly {
	return &partly{newFakeStore(), map[store.Part]bool{}, map[store.Scope]int{}}
}

func (p *partly) Apply(ctx context.Context, key store.Key, params limiter.Params, c limiter.Command) (limiter.Result, error) {
	if err := p.travel(ctx, p.there); err != nil {
		return limiter.Result{}, err
	}
	p.mu.Lock()
	p.calls[key.Scope]++
	for part, away := range p.away {
		if away && part.Has(key) {
			defer p.mu.Unlock()
			return limiter.Result{}, &store.UnavailableError{Store: "fake", Cause: errPart, Part: part}
		}
	}
	p.mu.Unlock()
	return p.fakeStore.Apply(ctx, key, params, c)
}

// setAway makes parts available or not.
func (p *partly) setAway(away bool, parts ...store.Part) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, part := range parts {
		p.away[part] = away
	}
}

func (p *partly) callsOf(s store.Scope) int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.calls[s]
}

var errPart = errors.New("does not serve this part")

// half is the counters whose hash begins with a low digit, or with a high one.
type half bool

func (h half) Has(k store.Key) bool { return k.Hash != "" && (k.Hash[0] < '8') == bool(h) }

// two opens limiters of two limits behind one breaker.
func two(t *testing.T, s Store, cfg Config) (good, bad *Limiter, badly store.Scope) {
	t.Helper()
	breaker := newBreaker(s, newClock())
	good = mustNew(cfg, breaker)
	cfg.Scope.Limit = "bad"
	bad = mustNew(cfg, breaker)
	t.Cleanup(func() {
		good.Close(context.WithoutCancel(t.Context()))
		bad.Close(context.WithoutCancel(t.Context()))
	})
	return good, bad, cfg.Scope
}

// TestALimitThatIsNotServedConcernsNoOther: its failure action decides for it alone, it is
// probed as seldom as a store that is away, and comes back by itself.
func TestALimitThatIsNotServedConcernsNoOther(t *testing.T) {
	for action, allowed := range map[Action]bool{Deny: false, Allow: true} {
		for name, mode := range map[string]Mode{"strict": Strict, "cached deny": CachedDeny, "leased": Leased} {
			t.Run(fmt.Sprintf("%s, action %d", name, action), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					s := newPartly()
					cfg := perSecond(100_000, 1)
					cfg.Mode, cfg.OnUnavailable = mode, action
					good, bad, badly := two(t, s, cfg)
					s.setAway(true, badly)
					for range 3000 {
						if d := acquire(t, good, "", 1); !d.Allowed || d.Source == FromFailureAction {
							t.Fatalf("the limit that is served: allowed %v from %v", d.Allowed, d.Source)
						}
						if d := acquire(t, bad, "", 1); d.Allowed != allowed || d.Source != FromFailureAction {
							t.Fatalf("the limit that is not served: allowed %v from %v", d.Allowed, d.Source)
						}
						time.Sleep(time.Millisecond)
					}
					if got := s.callsOf(badly); got < 3 || got > 8 {
						t.Errorf("asked %d times in 3 s for the limit that is not served, want a few, early ones", got)
					}
					if st := bad.Stats(); !errors.Is(st.CutOff, errPart) || st.CutOffSince.IsZero() {
						t.Errorf("that the limit is not served does not show: %+v", st)
					}
					if st := good.Stats(); st.CutOff != nil || st.Errors > 0 {
						t.Errorf("the limit that is served shows %+v", st)
					}
					s.setAway(false, badly)
					time.Sleep(2 * time.Second)
					if d := acquire(t, bad, "", 1); !d.Allowed || d.Source == FromFailureAction || bad.Stats().CutOff != nil {
						t.Errorf("not back: allowed %v from %v, cut off by %v", d.Allowed, d.Source, bad.Stats().CutOff)
					}
				})
			})
		}
	}
}

func TestAPartThatIsAwayConcernsNoOtherCounter(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newPartly()
		cfg := perSecond(100_000, 1)
		cfg.Mode = Strict
		l := open(t, cfg, s)
		s.setAway(true, half(true))
		for i := range 2000 {
			value := fmt.Sprint(i % 50)
			key := store.Key{Scope: cfg.Scope, Hash: store.HashValue(value)}
			if d, want := acquire(t, l, value, 1), !half(true).Has(key); d.Allowed != want {
				t.Fatalf("value %s: allowed %v, want %v", value, d.Allowed, want)
			}
			time.Sleep(time.Millisecond)
		}
		if st := l.Stats(); st.Errors > 8 || !errors.Is(st.CutOff, errPart) {
			t.Errorf("%d errors, cut off by %v, want a few probes of the part as a whole", st.Errors, st.CutOff)
		}
	})
}

// TestCallsThatFailTogetherAreOneFailureOfAPart: each began before the other was known.
func TestCallsThatFailTogetherAreOneFailureOfAPart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newPartly()
		cfg := perSecond(100_000, 1)
		b := newBreaker(s, newClock())
		key := store.Key{Scope: cfg.Scope}
		peek := func() error {
			_, err := b.call(t.Context(), key, cfg.Params, limiter.Command{Op: limiter.Peek}, 0)
			return err
		}
		if err := peek(); err != nil {
			t.Fatal(err)
		}
		s.setAway(true, cfg.Scope)
		s.there = constant(time.Millisecond)
		var calls sync.WaitGroup
		for range failuresToOpen {
			calls.Go(func() { _ = peek() })
		}
		calls.Wait()
		if since, cause := b.state(cfg.Scope); !since.IsZero() && cause != nil {
			t.Errorf("cut off by %v after one failure", cause)
		}
		if _ = peek(); s.callsOf(cfg.Scope) != failuresToOpen+2 {
			t.Errorf("%d calls, want that the next one is made", s.callsOf(cfg.Scope))
		}
		if err := peek(); s.callsOf(cfg.Scope) != failuresToOpen+2 || !errors.Is(err, errPart) {
			t.Errorf("%d calls, %v, want that the second failure in a row cut it off", s.callsOf(cfg.Scope), err)
		}
	})
}

// TestTheLocalShareOfALimitThatIsNotServed begins with the next window, though the store
// goes on to serve others.
func TestTheLocalShareOfALimitThatIsNotServed(t *testing.T) {
	for name, mode := range map[string]Mode{"leased": Leased, "strict": Strict} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newPartly()
				s.ahead = 300 * time.Millisecond
				cfg := perSecond(100, 10)
				cfg.OnUnavailable, cfg.Holders, cfg.Mode = LocalShare, 8, mode
				good, bad, badly := two(t, s, cfg)
				acquire(t, bad, "", 10) // the store is at 0.3
				s.setAway(true, badly)
				if got := admitted(t, bad, 20); got != 0 {
					t.Errorf("admitted %d in a window from which the store had granted", got)
				}
				time.Sleep(720 * time.Millisecond) // 1.02
				if d := acquire(t, good, "", 1); d.Source == FromLocalShare {
					t.Errorf("the limit that is served is decided from %v", d.Source)
				}
				if got := admitted(t, bad, 20); got != 12 {
					t.Errorf("admitted %d in the next window, want the share of 12", got)
				}
				s.setAway(false, badly)
				time.Sleep(900 * time.Millisecond) // 1.92: the breaker has let go
				if got := admitted(t, bad, 20); got != 0 {
					t.Errorf("admitted %d more in a window that began on the share", got)
				}
				time.Sleep(100 * time.Millisecond) // 2.02
				if d := acquire(t, bad, "", 1); !d.Allowed || d.Source == FromLocalShare {
					t.Errorf("got %v from %v, want an admission from the store", d.Allowed, d.Source)
				}
			})
		})
	}
}

// TestAWindowIsChargedAtTheStoreOrLocally lets a limit and parts of it come and go, and
// replies get lost. The one holder's share is the whole limit, so that any window that is
// charged at both shows.
func TestAWindowIsChargedAtTheStoreOrLocally(t *testing.T) {
	const limit = 20
	for name, mode := range map[string]Mode{"leased": Leased, "cached deny": CachedDeny, "strict": Strict} {
		for seed := range seeds.Of(uint64(20)) {
			t.Run(fmt.Sprintf("%s, seed=%d", name, seed), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					rng := rand.New(rand.NewPCG(seed, 0))
					s := newPartly()
					s.ahead = time.Duration(rng.Int64N(int64(time.Hour)))
					s.there = func() time.Duration { return time.Duration(rng.Int64N(int64(4 * time.Millisecond))) }
					s.back = s.there
					s.lost = func() bool { return rng.IntN(50) == 0 }
					cfg := perSecond(limit, 3)
					cfg.OnUnavailable, cfg.Holders, cfg.Mode = LocalShare, 1, mode
					good, bad, badly := two(t, s, cfg)
					values := []string{"a", "b", "c", "d"}
					type charged struct {
						value string
						index int64
					}
					all, local := map[charged]int64{}, 0
					for begin := time.Now(); time.Since(begin) < 20*time.Second; {
						if rng.IntN(40) == 0 {
							part := []store.Part{badly, half(true), half(false)}[rng.IntN(3)]
							s.setAway(rng.IntN(2) == 0, part)
						}
						acquire(t, good, values[rng.IntN(4)], 1)
						value := values[rng.IntN(4)]
						for range 1 + rng.IntN(8) {
							d := acquire(t, bad, value, 1)
							if !d.Allowed {
								break
							}
							c := charged{value, d.Windows.Open[0].Index}
							if all[c]++; all[c] > limit {
								t.Fatalf("admitted %d of %q in window %d", all[c], c.value, c.index)
							}
							if d.Source == FromLocalShare {
								local++
							}
						}
						time.Sleep(time.Duration(rng.Int64N(int64(10 * time.Millisecond))))
					}
					if local == 0 {
						t.Error("nothing was admitted alone: the test tests little")
					}
				})
			})
		}
	}
}

func TestPartsThatNobodyAsksForAreForgotten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newPartly()
		b := newBreaker(s, newClock())
		for i := range 100 {
			scope := store.Scope{Limit: fmt.Sprint(i)}
			s.setAway(true, scope)
			_, _ = b.Apply(t.Context(), store.Key{Scope: scope}, perSecond(1, 1).Params, limiter.Command{Min: 1, Want: 1})
			time.Sleep(10 * time.Second)
		}
		if got, most := len(b.parts), int(partTTL/(10*time.Second))+2; got > most {
			t.Errorf("%d parts are remembered, want at most %d", got, most)
		}
	})
}

// TestAHiccupOfAPartIsOneFailure: calls that began before the first failure was known say
// nothing new.
func TestAHiccupOfAPartIsOneFailure(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newPartly()
		b := newBreaker(s, newClock())
		ask := func(answers time.Duration) {
			s.set(func() { s.there = constant(answers) })
			_, _ = b.ask(t.Context(), storeKey, perSecond(10, 1).Params, limiter.Command{Op: limiter.Return, Want: 1}, 0, true)
		}
		s.setAway(true, storeKey.Scope)
		for i := range 3 {
			go ask(time.Duration(1+i) * 10 * time.Millisecond)
			synctest.Wait()
		}
		time.Sleep(35 * time.Millisecond)
		if _, cause := b.state(storeKey.Scope); cause != nil {
			t.Errorf("cut off by %v after calls that failed together", cause)
		}
		ask(0)
		if _, cause := b.state(storeKey.Scope); cause == nil {
			t.Error("not cut off after another failure")
		}
	})
}

// TestPartsThatFailInTurnAreShut: that one failed is not forgotten because another does.
func TestPartsThatFailInTurnAreShut(t *testing.T) {
	s := newPartly()
	b := NewVirtualBreaker(s, stopped{})
	scopes := []store.Scope{{Limit: "a"}, {Limit: "b"}}
	for range 2 {
		for _, scope := range scopes {
			s.setAway(true, scope)
			_, _ = b.ask(t.Context(), store.Key{Scope: scope}, perSecond(1, 1).Params, limiter.Command{Op: limiter.Return, Want: 1}, 0, true)
		}
	}
	for _, scope := range scopes {
		if _, cause := b.state(scope); !errors.Is(cause, errPart) {
			t.Errorf("limit %s: cut off by %v after two failures", scope.Limit, cause)
		}
	}
}

// stopped is a machine whose clock stands still.
type stopped struct{ Virtual }

func (stopped) Now() int64         { return int64(time.Hour) }
func (stopped) Random(int64) int64 { return 0 }
