package twotier

import (
	"testing"
	"testing/synctest"
	"time"
	"unsafe"

	"github.com/weir-dev/weir/pkg/limiter"
	"github.com/weir-dev/weir/pkg/sizing"
)

func adaptive(limit int64, size Size) Config {
	cfg := perSecond(limit, 1)
	cfg.Size = size
	return cfg
}

// windows lets the limiter decide n requests, evenly spread, in each of count
// windows.
func windows(t *testing.T, l *Limiter, count, n int) {
	t.Helper()
	for range count {
		nextWindow()
		for range n {
			acquire(t, l, "", 1)
			time.Sleep(900 * time.Millisecond / time.Duration(n))
		}
	}
}

func TestSizesAreLearnedFromTheLoad(t *testing.T) {
	for name, typ := range map[string]SizeType{"adaptive": Adaptive, "predictive": Predictive} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newFakeStore()
				l := open(t, adaptive(100_000, Size{Type: typ, Batch: 1, Min: 1, Max: 10_000}), s)
				windows(t, l, 12, 400)
				calls := s.count(limiter.Take)
				windows(t, l, 5, 400)
				if got := (s.count(limiter.Take) - calls) / 5; got < 2 || got > 20 {
					t.Errorf("%d calls for 400 requests, want a few", got)
				}
				k := l.single
				if got := k.peekAccount().Sizer.Forecast(); got < 300 || got > 500 {
					t.Errorf("it expects %v units in a window of 400", got)
				}
			})
		})
	}
}

// TestRefusedRequestsCountAsLoad: a key that is admitted little is not taken for one that
// is asked for little.
func TestRefusedRequestsCountAsLoad(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newFakeStore()
		l := open(t, adaptive(20, Size{Type: Adaptive, Batch: 5, Min: 1, Max: 100}), s)
		windows(t, l, 20, 200)
		if got := l.single.peekAccount().Sizer.Forecast(); got < 150 || got > 250 {
			t.Errorf("it expects %v units in a window, want about the 200 that are offered", got)
		}
		for _, c := range s.commands {
			if c.Op == limiter.Take && c.Want > 20 {
				t.Fatalf("asked for %d of a limit of 20", c.Want)
			}
		}
	})
}

// TestReturnedCreditsDoNotCountAsLoad: load that has gone leaves no key behind that leases
// for it, gives that back, and takes it for load.
func TestReturnedCreditsDoNotCountAsLoad(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const few, limit = 5, 400
		s := newFakeStore()
		cfg := adaptive(limit, Size{Type: Adaptive, Batch: 10, Min: 1})
		cfg.Params.Rates[0].Window = 8 * limiter.Second
		l := open(t, cfg, s)
		for _, requests := range []int{2 * limit, 2 * limit, 2 * limit, few, few, few, few, few, few, few, few} {
			nextOf(s, cfg)
			for range requests {
				acquire(t, l, "", 1)
				time.Sleep(7800 * time.Millisecond / time.Duration(requests))
			}
		}
		if returned(s) == 0 {
			t.Error("nothing was given back, so this shows nothing")
		}
		if got := l.single.peekAccount().Sizer.Forecast(); got > 3*few {
			t.Errorf("it expects %v units in a window, in which %d are asked for of late", got, few)
		}
	})
}

func TestAFloodOfRefusalsIsCountedByASample(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newFakeStore()
		l := open(t, adaptive(10, Size{Type: Adaptive, Batch: 10, Min: 1, Max: 10}), s)
		admitted(t, l, 11)
		for range 20_000 {
			acquire(t, l, "", 1)
			time.Sleep(20*time.Microsecond + 7)
		}
		if got := l.single.lease.Load().refused.Load(); got < 17_000 || got > 23_000 {
			t.Errorf("%d refusals counted of 20001", got)
		}
	})
}

func TestAFixedSizeLearnsNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newFakeStore()
		l := open(t, perSecond(100, 7), s)
		windows(t, l, 4, 200)
		if l.single.sizer != (sizing.Sizer{}) || l.single.demand != 0 || l.single.lease.Load().refused.Load() != 0 {
			t.Error("it learned something")
		}
	})
}

func TestTheFirstLeaseInAWindowSaysSo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newFakeStore()
		l := open(t, perSecond(1000, 10), s)
		for range 3 {
			from := len(s.commands)
			admitted(t, l, 50)
			for i, c := range s.commands[from:] {
				if c.First != (i == 0) {
					t.Errorf("call %d of the window: first is %v", i, c.First)
				}
			}
			nextWindow()
		}
	})
}

func TestTheFirstLeaseAfterALateGrantSaysSo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newFakeStore()
		cfg := perSecond(1000, 10)
		cfg.Timeout = time.Second
		l := open(t, cfg, s)
		acquire(t, l, "", 10)
		time.Sleep(900 * time.Millisecond)
		s.set(func() { s.back = constant(200 * time.Millisecond) })
		acquire(t, l, "", 1)
		if last := s.commands[len(s.commands)-1]; !last.First {
			t.Error("the call in the next window does not say that it is the first")
		}
	})
}

func TestAHolderThatTheStoreKnowsIsNotBoundByItsPart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newFakeStore()
		cfg := perSecond(1000, 100)
		cfg.Holders = 512
		l := open(t, cfg, s)
		acquire(t, l, "", 1)
		nextWindow()
		acquire(t, l, "", 1)
		time.Sleep(5 * time.Second)
		acquire(t, l, "", 1)
		var got []int64
		for _, c := range s.commands {
			got = append(got, c.Want)
		}
		if len(got) != 3 || got[0] != 2 || got[1] != 100 || got[2] != 2 {
			t.Errorf("asked for %v, want 2, a part of 512, while the store does not know of it, and 100 when it does", got)
		}
	})
}

func TestOverridesAreOfSingleValues(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newFakeStore()
		cfg := perSecond(10, 100)
		cfg.Overrides = map[string]limiter.Params{
			"gold": {Generation: 1, Rates: []limiter.Rate{{Limit: 30, Window: limiter.Second}}},
		}
		l := open(t, cfg, s)
		for value, want := range map[string]int{"gold": 30, "others": 10} {
			var sum int
			for range 50 {
				if acquire(t, l, value, 1).Allowed {
					sum++
				}
			}
			if sum != want {
				t.Errorf("%q: admitted %d, want %d", value, sum, want)
			}
		}
		if d := acquire(t, l, "fresh", 20); d.Reason != limiter.TooLarge {
			t.Errorf("cost 20 of 10: %v", d.Reason)
		}
	})
}

func TestTenantsLeaseForThemselves(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newFakeStore()
		cfg := perSecond(100, 10)
		cfg.Params.Fairness = limiter.Fairness{
			Weights: []limiter.Weight{{Tenant: "a", Weight: 1}, {Tenant: "b", Weight: 3}}, Default: 1,
		}
		l := open(t, cfg, s)
		got := map[string]int{}
		for range 300 {
			for _, tenant := range []string{"a", "b"} {
				d, err := l.Acquire(t.Context(), Request{Value: "key", Tenant: tenant, Cost: 1})
				if err != nil {
					t.Fatal(err)
				}
				if d.Allowed {
					got[tenant]++
				}
			}
		}
		if got["a"] < 24 || got["a"] > 26 || got["a"]+got["b"] != 100 {
			t.Errorf("admitted %v, want 25 and 75", got)
		}
		if len(s.keys) != 1 {
			t.Errorf("%d counters at the store, want the one of the value", len(s.keys))
		}
	})
}

func TestTenantsHaveOneLocalShareTogether(t *testing.T) {
	for name, value := range map[string]string{"of a value": "key", "of the single counter": ""} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newFakeStore()
				cfg := perSecond(100, 10)
				cfg.OnUnavailable, cfg.Holders = LocalShare, 5
				l := open(t, cfg, s)
				acquire(t, l, value, 1)
				s.set(func() { s.down = errDown })
				nextWindow()
				var sum int
				for range 50 {
					for _, tenant := range []string{"a", "b", "c"} {
						d, err := l.Acquire(t.Context(), Request{Value: value, Tenant: tenant, Cost: 1})
						if err != nil {
							t.Fatal(err)
						}
						if d.Allowed {
							sum++
						}
					}
				}
				if sum != 20 {
					t.Errorf("admitted %d, want the share of 20 once", sum)
				}
				s.set(func() { s.down = nil })
				time.Sleep(500 * time.Millisecond)
				d, err := l.Acquire(t.Context(), Request{Value: value, Tenant: "d", Cost: 1})
				if err != nil || d.Allowed {
					t.Errorf("got %+v, %v, want a refusal: the window began on the local share", d, err)
				}
			})
		})
	}
}

func TestAKeyFillsOneCacheLine(t *testing.T) {
	if size := unsafe.Sizeof(Key{}); size > 64 {
		t.Errorf("a key takes %d bytes, want at most 64", size)
	}
}
