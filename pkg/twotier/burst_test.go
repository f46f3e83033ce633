package twotier

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weir-dev/weir/pkg/limiter"
	"github.com/weir-dev/weir/pkg/store"
	"github.com/weir-dev/weir/pkg/twotier/account"
)

// besides lets the given number of other holders lease one unit each in the open window.
func besides(t *testing.T, s *fakeStore, cfg Config, holders int) {
	t.Helper()
	for range holders {
		one := limiter.Command{Op: limiter.Take, Min: 1, Want: 1, First: true}
		if _, err := s.Apply(t.Context(), store.Key{Scope: cfg.Scope}, cfg.Params, one); err != nil {
			t.Fatal(err)
		}
	}
}

// The store grants a holder the part of many. More than that waits there.
func TestABurstAtOneHolderOfManyIsServed(t *testing.T) {
	for name, tc := range map[string]struct {
		burst       int
		want, calls int
	}{
		"within the limit":          {burst: 100, want: 100, calls: 2},
		"more than half the limit":  {burst: 700, want: 700, calls: 4},
		"all that there is":         {burst: 1000, want: 999, calls: 13},
		"no more than fits at once": {burst: 2, want: 2, calls: 1},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newFakeStore()
				cfg := perSecond(1000, 10)
				cfg.Holders = 500
				l := open(t, cfg, s)
				nextWindow()
				besides(t, s, cfg, 499)
				acquire(t, l, "", 1)
				nextWindow()
				s.there, s.back = constant(500*time.Microsecond), constant(500*time.Microsecond)
				calls := s.count(limiter.Take)
				var requests sync.WaitGroup
				all := crowd(t, l, tc.burst, &requests)
				requests.Wait()
				got := 0
				for _, d := range all {
					if d.Allowed {
						got++
					}
				}
				if got < tc.want || s.count(limiter.Take)-calls > tc.calls {
					t.Errorf("%d of %d admitted by %d calls, want %d by at most %d", got, tc.burst, s.count(limiter.Take)-calls, tc.want, tc.calls)
				}
			})
		})
	}
}

func TestALeaseBringsWhatWaits(t *testing.T) {
	const now, ends = 1000, 2000
	for name, tc := range map[string]struct {
		algorithm       limiter.Algorithm
		ends            int64
		held, remaining int64
		want            int64
	}{
		"the first of a window leaves it to the store": {ends: now, remaining: 900, want: 1},
		"later ones bring all":                         {ends: ends, remaining: 900, want: 50},
		"but for what is in hand":                      {ends: ends, remaining: 900, held: 20, want: 30},
		"and half of what was left at most":            {ends: ends, remaining: 41, want: 21},
		"when nothing was left, what one needs":        {ends: ends, want: 1},
		"nothing that flows in bit by bit":             {algorithm: limiter.TokenBucket, ends: ends, remaining: 900, want: 1},
	} {
		t.Run(name, func(t *testing.T) {
			cfg := perSecond(1000, 10)
			cfg.Params.Algorithm = tc.algorithm
			cfg = cfg.normalize()
			r := rulesOf(&cfg)
			a := r.Open()
			a.Ends, a.Remaining = tc.ends, tc.remaining
			a.Front = account.Grant{Credits: tc.held, Deadline: ends}
			cost := tc.held + 1
			if got := r.Ask(a, cfg.Params, now, cost, 50, 0).Min; got != tc.want {
				t.Errorf("asks for at least %d, want %d", got, tc.want)
			}
		})
	}
}

// Others take from what was left last, and a lease that asks for more than there is
// would bring nothing.
func TestABurstIsServedAlthoughOthersAreFaster(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newFakeStore()
		cfg := perSecond(1000, 10)
		cfg.Holders = 500
		l := open(t, cfg, s)
		nextWindow()
		besides(t, s, cfg, 499)
		acquire(t, l, "", 1)
		nextWindow()
		s.there, s.back = constant(5*time.Millisecond), constant(5*time.Millisecond)
		ctx, cancel := context.WithCancel(t.Context())
		var others sync.WaitGroup
		others.Go(func() {
			for every(ctx, 2*time.Millisecond) {
				one := limiter.Command{Op: limiter.Take, Min: 1, Want: 1, First: true}
				_, _ = s.Apply(ctx, store.Key{Scope: cfg.Scope}, cfg.Params, one)
			}
		})
		var requests sync.WaitGroup
		all := crowd(t, l, 900, &requests)
		requests.Wait()
		cancel()
		others.Wait()
		got := 0
		for _, d := range all {
			if d.Allowed {
				got++
			}
		}
		if got < 890 {
			t.Errorf("%d of 900 admitted beside a few others, limit 1000", got)
		}
	})
}
