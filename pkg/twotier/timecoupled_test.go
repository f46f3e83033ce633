package twotier

import (
	"cmp"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weir-dev/weir/internal/testing/seeds"
	"github.com/weir-dev/weir/pkg/limiter"
)

// byTime returns a fleet's configuration of a time-coupled limit.
func byTime(a limiter.Algorithm, mode Mode) Config {
	cfg := fleetConfig(mode)
	cfg.Params.Algorithm = a
	cfg.Params.Rates = []limiter.Rate{{Limit: 100, Window: 500 * limiter.Millisecond}}
	switch a {
	case limiter.TokenBucket, limiter.GCRA:
		cfg.Params.Rates[0].Burst = 60
	case limiter.SlidingWindow:
		cfg.Params.Buckets = 10
	default:
	}
	if mode == Leased {
		cfg.Params.Lifetime = 150 * limiter.Millisecond
		cfg.LowWater = 3
	}
	return cfg
}

// excess returns by how much the promise of the parameters was exceeded in the
// worst interval, at most 0 if it was kept.
func excess(p limiter.Params, spent []spending) int64 {
	slices.SortStableFunc(spent, func(a, b spending) int { return int(a.at - b.at) })
	worst := int64(-1 << 62)
	for _, r := range p.Rates {
		bucket := p.Algorithm == limiter.TokenBucket || p.Algorithm == limiter.GCRA
		for i := range spent {
			var sum int64
			for _, s := range spent[i:] {
				length := int64(s.at - spent[i].at)
				if !bucket && length >= int64(r.Window) {
					break
				}
				most := r.Limit
				if bucket {
					if length > 4*int64(r.Window) {
						break
					}
					most = cmp.Or(r.Burst, r.Limit) + r.Limit*length/int64(r.Window)
				}
				sum += s.cost
				worst = max(worst, sum-most)
			}
		}
	}
	return worst
}

// TestFleetKeepsThePromiseOfEveryInterval counts at the moment each request is let
// through, by the store's clock, what was admitted in each interval.
func TestFleetKeepsThePromiseOfEveryInterval(t *testing.T) {
	for _, a := range []limiter.Algorithm{limiter.SlidingWindow, limiter.SlidingLog, limiter.TokenBucket, limiter.GCRA} {
		for name, mode := range map[string]Mode{"leased": Leased, "strict": Strict, "cached deny": CachedDeny} {
			for seed := range seeds.Of(uint64(3)) {
				t.Run(fmt.Sprintf("%v, %s, seed=%d", a, name, seed), func(t *testing.T) {
					synctest.Test(t, func(t *testing.T) {
						f := newFleet(t, seed, byTime(a, mode))
						if mode != Leased {
							// Grants are let through when the answer comes: the promise is about
							// the instant at the store.
							f.store.back = constant(0)
						}
						f.run(6*time.Second, func(time.Duration) {})
						if over := excess(f.cfg.Params, f.spent); over > 0 {
							t.Errorf("admitted %d too many in some interval", over)
						}
						var total int64
						for _, s := range f.spent {
							total += s.cost
						}
						if total < 300 {
							t.Errorf("admitted %d in 6 s of 200 a second: the test tests little", total)
						}
					})
				})
			}
		}
	}
}

func TestTheExcessIsFound(t *testing.T) {
	p := limiter.Params{Rates: []limiter.Rate{{Limit: 10, Window: limiter.Second, Burst: 4}}}
	at := func(ms, cost int64) spending {
		return spending{limiter.Instant(ms) * limiter.Instant(limiter.Millisecond), cost}
	}
	for name, tc := range map[string]struct {
		algorithm limiter.Algorithm
		spent     []spending
		want      int64
	}{
		"a sliding window at its limit": {limiter.SlidingLog, []spending{at(0, 6), at(999, 4)}, 0},
		"a sliding window over it":      {limiter.SlidingLog, []spending{at(0, 6), at(999, 5)}, 1},
		"two sliding windows":           {limiter.SlidingLog, []spending{at(0, 10), at(1000, 10)}, 0},
		"a bucket at its burst":         {limiter.TokenBucket, []spending{at(0, 4), at(100, 1), at(500, 4)}, 0},
		"a bucket over it":              {limiter.TokenBucket, []spending{at(0, 4), at(100, 1), at(499, 4)}, 1},
	} {
		t.Run(name, func(t *testing.T) {
			p.Algorithm = tc.algorithm
			if got := excess(p, tc.spent); got != tc.want {
				t.Errorf("%d over, want %d", got, tc.want)
			}
		})
	}
}

func TestTimeCoupledCreditsDieByThemselves(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newFakeStore()
		cfg := byTime(limiter.TokenBucket, Leased)
		cfg.LowWater, cfg.Holders = 0, 1
		l := open(t, cfg, s)
		granted := acquire(t, l, "", 1)
		time.Sleep(100 * time.Millisecond)
		if d := acquire(t, l, "", 1); !d.Allowed || *d.Windows != *granted.Windows || s.count(limiter.Take) != 1 {
			t.Errorf("got %+v by call %d, want a credit of the first grant", d, s.count(limiter.Take))
		}
		time.Sleep(60 * time.Millisecond)
		if d := acquire(t, l, "", 1); !d.Allowed || s.count(limiter.Take) != 2 {
			t.Errorf("allowed %v by call %d, want a second call: the credits were 160 ms old", d.Allowed, s.count(limiter.Take))
		}
	})
}

func TestACreditSaysTheWindowsOfItsGrant(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newFakeStore()
		cfg := byTime(limiter.GCRA, Leased)
		cfg.LowWater, cfg.Holders = 0, 1
		l := open(t, cfg, s)
		time.Sleep(450 * time.Millisecond)
		before := acquire(t, l, "", 1)
		time.Sleep(100 * time.Millisecond) // in the next window
		after := acquire(t, l, "", 1)
		if *before.Windows != *after.Windows {
			t.Errorf("windows %+v, then %+v, want those of the grant", before.Windows, after.Windows)
		}
	})
}

func TestACostThatNothingInHandPaysLeavesSmallerOnesTheirCredits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newFakeStore()
		cfg := byTime(limiter.TokenBucket, Leased)
		cfg.LowWater, cfg.Holders, cfg.Size.Batch = 0, 1, 5
		l := open(t, cfg, s)
		acquire(t, l, "", 3) // 2 held
		if d := acquire(t, l, "", 4); !d.Allowed {
			t.Errorf("got %+v", d)
		}
		if got := s.commands[1].Min; got != 4 {
			t.Errorf("asked for at least %d, want all 4: credits of two instants do not add up", got)
		}
		calls := s.count(limiter.Take)
		if d := acquire(t, l, "", 2); !d.Allowed || s.count(limiter.Take) != calls {
			t.Errorf("allowed %v after %d calls, want the 2 in hand", d.Allowed, s.count(limiter.Take)-calls)
		}
	})
}

func TestReturnsOfTimeCoupledCreditsNameTheirInstant(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newFakeStore()
		cfg := byTime(limiter.SlidingLog, Leased)
		cfg.LowWater, cfg.Holders, cfg.Size.Batch = 0, 1, 10
		l := mustNew(cfg, newBreaker(s, newClock()))
		d := acquire(t, l, "", 4)
		at := s.now()
		time.Sleep(20 * time.Millisecond)
		d.Cancel()
		l.Close(t.Context())
		last := s.commands[len(s.commands)-1]
		if last.Op != limiter.Return || last.Want != 10 || last.At != at {
			t.Errorf("the last command is %+v, want the return of 10 granted at %d", last, at)
		}
		for _, state := range s.keys {
			for _, m := range state.Slice() {
				if len(m.Log) != 0 {
					t.Errorf("the store still counts %v", m.Log)
				}
			}
		}
	})
}

func TestLeakyBucketReturnsHowLongToWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newFakeStore()
		cfg := perSecond(10, 50)
		cfg.Params.Algorithm, cfg.Params.MaxDelay = limiter.LeakyBucket, 300*limiter.Millisecond
		l := open(t, cfg, s)
		for i := range 4 {
			d := acquire(t, l, "", 1)
			if want := time.Duration(i) * 100 * time.Millisecond; !d.Allowed || d.Delay != want {
				t.Errorf("request %d: allowed %v after %v, want after %v", i, d.Allowed, d.Delay, want)
			}
		}
		d := acquire(t, l, "", 1)
		if d.Allowed || d.RetryAfter != 100*time.Millisecond {
			t.Errorf("got %+v, want a refusal for 100ms: it would wait too long", d)
		}
		acquire(t, l, "", 1)
		if got := s.count(limiter.Take); got != 6 {
			t.Errorf("%d calls, want one for each of 6: a place in the queue is nobody else's", got)
		}
	})
}

func TestNothingIsLeasedThatHasNoLifetime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newFakeStore()
		cfg := perSecond(10, 5)
		cfg.Params.Algorithm = limiter.TokenBucket
		l := open(t, cfg, s)
		if got := admitted(t, l, 30); got != 10 {
			t.Errorf("admitted %d of a burst of 10", got)
		}
		if got := s.count(limiter.Take); got != 11 {
			t.Errorf("%d calls, want one for each that is admitted and one to be refused", got)
		}
	})
}
