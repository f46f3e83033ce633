package twotier

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/weir-dev/weir/internal/testing/seeds"
	"github.com/weir-dev/weir/pkg/limiter"
	"github.com/weir-dev/weir/pkg/sizing"
	"github.com/weir-dev/weir/pkg/twotier/account"
)

// variants are configurations that differ in every rule of an account.
func variants() map[string]Config {
	by := func(a limiter.Algorithm, change func(*Config)) Config {
		cfg := perSecond(60, 10)
		cfg.ReturnIdleAfter = time.Hour // by a watch, which is not a rule of an account
		cfg.Params.Algorithm = a
		if a != limiter.FixedWindow {
			cfg.Params.Lifetime = 200 * limiter.Millisecond
		}
		if a == limiter.SlidingWindow {
			cfg.Params.Buckets = 10
		}
		change(&cfg)
		return cfg
	}
	none := func(*Config) {}
	return map[string]Config{
		"windows":    by(limiter.FixedWindow, none),
		"carry-over": by(limiter.FixedWindow, func(c *Config) { c.Expiry = CarryOver }),
		"two windows": by(limiter.FixedWindow, func(c *Config) {
			c.Params.Rates = append(c.Params.Rates, limiter.Rate{Limit: 200, Window: 10 * limiter.Second})
		}),
		"adaptive":       by(limiter.FixedWindow, func(c *Config) { c.Size = Size{Type: Adaptive, Batch: 5, Min: 1, Max: 50} }),
		"predictive":     by(limiter.FixedWindow, func(c *Config) { c.Size = Size{Type: Predictive, Batch: 5, Min: 1, Max: 50} }),
		"token bucket":   by(limiter.TokenBucket, none),
		"sliding window": by(limiter.SlidingWindow, none),
		"adaptive by time": by(limiter.GCRA, func(c *Config) {
			c.Size = Size{Type: Adaptive, Batch: 5, Min: 1, Max: 50}
		}),
	}
}

// An exchange is what a store was asked and what it answered.
type exchange struct {
	command limiter.Command
	reply   account.Reply
}

// record notes all that the store of *l is asked for, and what it takes back.
func record(s *fakeStore, l **Limiter) *[]exchange {
	log := new([]exchange)
	s.hook = func(c limiter.Command, res limiter.Result) limiter.Result {
		if now := (*l).clock.now(); c.Op == limiter.Take || res.Reason == limiter.Granted {
			*log = append(*log, exchange{c, account.Reply{Result: res, Sent: now, Received: now}})
		}
		return res
	}
	return log
}

// TestAKeyWorksAsItsAccount lets a key and the pure account decide the same
// requests, and compares what they decide, ask for and know.
func TestAKeyWorksAsItsAccount(t *testing.T) {
	for name, cfg := range variants() {
		for seed := range seeds.Of(uint64(4)) {
			t.Run(fmt.Sprintf("%s, seed=%d", name, seed), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) { shadow(t, cfg, rand.New(rand.NewPCG(seed, 0))) })
			})
		}
	}
}

func shadow(t *testing.T, cfg Config, rng *rand.Rand) {
	var l *Limiter
	s := newFakeStore()
	log := record(s, &l)
	l = open(t, cfg, s)
	rules := l.settings.Load().Rules
	a := rules.Open()
	var outcomes [3]int
	pause := time.Millisecond
	for i := range 3000 {
		if i%200 == 0 {
			pause = time.Duration(1+rng.IntN(100)) * time.Millisecond
		}
		time.Sleep(time.Duration(rng.Int64N(int64(pause))))
		cost := 1 + rng.Int64N(1+rng.Int64N(12))
		asked, now := len(*log), l.clock.now()
		d := acquire(t, l, "", cost)
		synctest.Wait() // for what is given back

		if cfg.Expiry == CarryOver {
			a = a.CarryOver(now, rules.MaxCarried(), l.openWindows(l.settings.Load(), a.Front.Windows, now))
		}
		var out account.Outcome
		a, out = rules.Decide(a, now, cost)
		for _, x := range (*log)[asked:] {
			if x.command.Op == limiter.Return {
				a = a.Returned(x.command.Want)
				continue
			}
			if out != account.Undecided {
				t.Fatalf("the account is %v, the key asks %+v", out, x.command)
			}
			want := rules.Ask(a, cfg.Params, now, cost, cost, cfg.Holders)
			if diff := cmp.Diff(want, x.command); diff != "" {
				t.Fatalf("the key asked otherwise (-account +key):\n%s", diff)
			}
			a, _ = rules.Settle(a, now, x.command, x.reply)
			a, out = rules.Decide(a, now, cost)
		}
		outcomes[out]++
		switch charge := l.single.lease.Load().info.charge(); {
		case out != account.Admitted:
		case rng.IntN(10) == 0:
			d.Cancel()
			a.Balance, _ = a.Refund(charge, cost)
		case rng.IntN(20) == 0:
			more := rng.Int64N(15)
			var charged int64
			a, charged = a.Owe(now, more, account.LargestCost(cfg.Params), charge)
			if got := d.Settle(cost + more); got != charged {
				t.Fatalf("settling %d more charged %d, the account %d", more, got, charged)
			}
		}
		if d.Allowed != (out == account.Admitted) {
			t.Fatalf("cost %d: the account is %v, the key allowed %v", cost, out, d.Allowed)
		}
		a = compare(t, a, l.single, now)
	}
	if outcomes[account.Admitted] < 200 || outcomes[account.Refused] < 200 || len(*log) < 100 {
		t.Errorf("%d admitted, %d refused, %d calls: the test tests little", outcomes[account.Admitted], outcomes[account.Refused], len(*log))
	}
}

// compare compares what a request can find out of an account and a key, and returns
// the account with the instants of the key: keys share those that are nearly equal.
func compare(t *testing.T, a account.State, k *Key, now int64) account.State {
	t.Helper()
	got := k.peekAccount()
	got.Refused = k.lease.Load().refused.Load()
	for _, instants := range [][2]*int64{{&a.Until, &got.Until}, {&a.Resets, &got.Resets}, {&a.Ends, &got.Ends}} {
		if early := *instants[0] - *instants[1]; early >= 0 && early <= jitter {
			*instants[0] = *instants[1]
		}
	}
	if min(a.Refused, got.Refused) >= exactCounts { // from there on a key counts a sample
		a.Refused = got.Refused
	}
	type facts struct {
		Front, Back int64
		Carried     int64
		Debt        int64
		Refusal     account.Refusal
		Sizer       sizing.Sizer
		Demand      int64
		Refused     int64
	}
	of := func(a account.State) facts {
		a.Expire(now)
		f := facts{a.Front.Held(now), a.Back.Held(now), a.Front.Carried, a.Debt, a.Refusal, a.Sizer, a.Demand, a.Refused}
		if f.Refusal.Until <= now {
			f.Refusal = account.NoRefusal
		}
		f.Refusal.Until = max(f.Refusal.Until, now)
		return f
	}
	if diff := cmp.Diff(of(a), of(got), cmp.AllowUnexported(sizing.Sizer{})); diff != "" {
		t.Fatalf("(-account +key):\n%s", diff)
	}
	return a
}
