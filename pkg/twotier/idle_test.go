package twotier

import (
	"context"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weir-dev/weir/pkg/limiter"
)

// hourly returns a configuration whose idle keys give back after 10 s.
func hourly(limit, batch int64) Config {
	cfg := perSecond(limit, batch)
	cfg.Params.Rates[0].Window = 3600 * limiter.Second
	cfg.ReturnIdleAfter = 10 * time.Second
	return cfg
}

func returned(s *fakeStore) (total int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, c := range s.commands {
		if c.Op == limiter.Return {
			total += c.Want
		}
	}
	return total
}

func TestIdleKeysGiveBackOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newFakeStore()
		l := open(t, hourly(1000, 10), s)
		time.Sleep(4900 * time.Millisecond) // just before somebody looks
		acquire(t, l, "idle", 3)
		for range 99 {
			acquire(t, l, "busy", 1)
			time.Sleep(time.Second / 10)
			synctest.Wait()
		}
		if got := returned(s); got != 0 {
			t.Errorf("%d given back in 9.9 s, want none before 10 s", got)
		}
		for range 52 {
			acquire(t, l, "busy", 1)
			time.Sleep(time.Second / 10)
			synctest.Wait()
		}
		if got := returned(s); got != 7 {
			t.Errorf("%d given back in 15 s, want the 7 of the idle key", got)
		}
		time.Sleep(time.Minute)
		if got := s.count(limiter.Return); got != 2 {
			t.Errorf("%d returns, want one for each key that became idle", got)
		}
		if d := acquire(t, l, "idle", 990); !d.Allowed {
			t.Errorf("refused what is left of 1000 after 3: %+v", d)
		}
	})
}

func TestIdleKeysForfeitUnitsOfWindowsThatAreOver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newFakeStore()
		cfg := perSecond(100, 10)
		cfg.ReturnIdleAfter = 2 * time.Second
		l := open(t, cfg, s)
		acquire(t, l, "", 3)
		time.Sleep(10 * time.Second)
		if got := s.count(limiter.Return); got != 0 {
			t.Errorf("%d returns to a window that is over", got)
		}
	})
}

func TestRefusalsOutliveTheReturnsOfIdleKeys(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newFakeStore()
		l := open(t, hourly(10, 10), s)
		acquire(t, l, "", 3)
		if d := acquire(t, l, "", 9); d.Allowed {
			t.Fatal("admitted 12 of 10")
		}
		time.Sleep(20 * time.Second)
		if got := returned(s); got != 7 {
			t.Errorf("%d given back, want 7", got)
		}
	})
}

// A refusal is of what the store had left. Units that go back to it may be granted again.
func TestUnitsThatAnIdleKeyReturnedAreNotRefusedToIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newFakeStore()
		l := open(t, hourly(10, 10), s) // the batch is the limit: the grant takes the rest
		acquire(t, l, "", 3)
		time.Sleep(30 * time.Second)
		if got := returned(s); got != 7 {
			t.Fatalf("%d given back, want 7", got)
		}
		if d := acquire(t, l, "", 8); d.Allowed || s.count(limiter.Take) != 1 {
			t.Errorf("got %+v after %d calls, want a refusal of 11 of 10 that is known", d, s.count(limiter.Take))
		}
		if d := acquire(t, l, "", 7); !d.Allowed {
			t.Errorf("refused what was given back: %+v", d)
		}
	})
}

func TestNoOneLooksWhenNothingIsToBeReturned(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newFakeStore()
		cfg := hourly(100, 10)
		l := open(t, cfg, s)
		cfg.ReturnIdleAfter = 0
		l.Reconfigure(cfg)
		acquire(t, l, "", 3)
		time.Sleep(time.Minute)
		if got := s.count(limiter.Return); got != 0 {
			t.Errorf("%d returns, want none", got)
		}
		cfg.ReturnIdleAfter = 10 * time.Second
		l.Reconfigure(cfg)
		time.Sleep(time.Minute)
		if got := s.count(limiter.Return); got != 1 {
			t.Errorf("%d returns, want 1", got)
		}
	})
}

// nextOf sleeps until a window of the configuration has just begun.
func nextOf(s *fakeStore, cfg Config) {
	window := cfg.Params.Rates[0].Window
	left := window - limiter.Micros(s.now())%window
	time.Sleep(time.Duration(left)*time.Microsecond + 2*time.Millisecond)
}

func TestIdleKeysGiveBackByThemselvesWhereLittleIsLeft(t *testing.T) {
	const spent, held = 3, 7
	for name, tc := range map[string]struct {
		limit  int64
		change func(*Config)
		want   int64 // given back
	}{
		"where little is left":           {limit: 45, want: held},
		"not where few ask":              {limit: 25},
		"not where plenty is":            {limit: 1000},
		"not what no window ends":        {limit: 45, change: func(c *Config) { c.Params.Algorithm, c.Params.Lifetime = limiter.TokenBucket, 4*limiter.Second }},
		"not where no size is learned":   {limit: 45, change: func(c *Config) { c.Size = Size{Batch: 10} }},
		"not in windows below 800 ms":    {limit: 45, change: func(c *Config) { c.Params.Rates[0].Window = 799 * limiter.Millisecond }},
		"in windows of 800 ms":           {limit: 45, want: held, change: func(c *Config) { c.Params.Rates[0].Window = 800 * limiter.Millisecond }},
		"not when they do not idle long": {limit: 45, change: func(c *Config) { c.ReturnIdleAfter = time.Hour }},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newFakeStore()
				cfg := perSecond(tc.limit, 10)
				cfg.Params.Rates[0].Window = 8 * limiter.Second
				cfg.Size = Size{Type: Adaptive, Batch: 10, Min: 10, Max: 10}
				if tc.change != nil {
					tc.change(&cfg)
				}
				l := open(t, cfg, s)
				nextOf(s, cfg)
				for range min(tc.limit, 50) {
					acquire(t, l, "", 1)
				}
				nextOf(s, cfg)
				acquire(t, l, "", spent)
				time.Sleep(time.Duration(cfg.Params.Rates[0].Window) * time.Microsecond / 4)
				synctest.Wait()
				if got := returned(s); got != tc.want {
					t.Errorf("%d given back, want %d", got, tc.want)
				}
			})
		})
	}
}

// The watch of idle keys wakes nobody while there is nothing to give back.
func TestTheWatchRestsWhileNoKeyHoldsCredits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newFakeStore()
		cfg := perSecond(100, 10)
		cfg.ReturnIdleAfter = 400 * time.Millisecond
		l := open(t, cfg, s)
		looking := func() bool { return l.idleScan.Load().running.Load() }
		for range 3 {
			nextWindow()
			acquire(t, l, "", 1)
			if !looking() {
				t.Fatal("nobody looks at a key that holds credits")
			}
			time.Sleep(900 * time.Millisecond)
			synctest.Wait()
			if looking() {
				t.Error("keys that hold nothing are looked at")
			}
		}
		if got := returned(s); got != 27 {
			t.Errorf("%d given back, want 9 in each of 3 windows", got)
		}
	})
}

// The connections of a few clients carry the load from one holder to another. The
// other then uses what the one holds.
func TestUnitsThatLoadLeavesBehindAreUsedElsewhere(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const holders, windows, limit = 4, 60, 200
		s := newFakeStore()
		s.there, s.back = constant(200*time.Microsecond), constant(200*time.Microsecond)
		cfg := perSecond(limit, 100)
		cfg.Params.Rates[0].Window = 5 * limiter.Second
		cfg.Size = Size{Type: Adaptive, Batch: 100, Min: 1}
		cfg.Holders = holders
		var limiters [holders]*Limiter
		for i := range limiters {
			limiters[i] = open(t, cfg, s)
		}
		nextOf(s, cfg)
		ctx, cancel := context.WithTimeout(t.Context(), windows*5*time.Second-10*time.Millisecond)
		defer cancel()
		var admitted atomic.Int64
		var clients, requests sync.WaitGroup
		for client := range uint64(2) {
			rng := rand.New(rand.NewPCG(1, client))
			clients.Go(func() {
				to := limiters[rng.IntN(holders)]
				for every(ctx, 12500*time.Microsecond) { // both together ask for four times the limit
					if rng.IntN(80) == 0 {
						to = limiters[rng.IntN(holders)]
					}
					holder := to
					requests.Go(func() {
						if d, err := holder.Acquire(t.Context(), Request{Cost: 1}); err == nil && d.Allowed {
							admitted.Add(1)
						}
					})
				}
			})
		}
		clients.Wait()
		requests.Wait()
		if got := admitted.Load(); got < windows*limit*98/100 || got > windows*limit {
			t.Errorf("%d admitted, want 98 %% of %d at least", got, windows*limit)
		}
	})
}
