package handover

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weir-dev/weir/pkg/limiter"
)

func TestALeaderWaitsForThePromisesOfThoseThatAreThere(t *testing.T) {
	const until = limiter.Instant(7e6)
	for name, tc := range map[string]struct {
		do   func(p *Promises[string])
		left int
	}{
		"both promise":                  {func(p *Promises[string]) { p.Make("a", until); p.Make("b", until+1) }, 0},
		"one promises, one leaves":      {func(p *Promises[string]) { p.Make("a", until); p.Leave("b") }, 0},
		"one promises":                  {func(p *Promises[string]) { p.Make("a", until) }, 1},
		"one promises less":             {func(p *Promises[string]) { p.Make("a", until); p.Make("b", until-1) }, 1},
		"one promises twice":            {func(p *Promises[string]) { p.Make("a", until); p.Make("a", until) }, 1},
		"a third comes":                 {func(p *Promises[string]) { p.Join("c"); p.Make("a", until); p.Make("b", until) }, 1},
		"a third comes and promises":    {func(p *Promises[string]) { p.Join("c"); p.Make("a", until); p.Make("c", until); p.Leave("b") }, 0},
		"somebody promises who is gone": {func(p *Promises[string]) { p.Leave("a"); p.Make("a", until) }, 1},
		"nobody":                        {func(*Promises[string]) {}, 2},
	} {
		for _, when := range []string{"before", "meanwhile"} {
			t.Run(name+" "+when, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					p := new(Promises[string])
					p.Ask(until)
					for _, h := range []string{"a", "b"} {
						if got := p.Join(h); got != until {
							t.Errorf("%s has to promise until %d, want %d", h, got, until)
						}
					}
					if when == "before" {
						tc.do(p)
					} else {
						time.AfterFunc(time.Second, func() { tc.do(p) })
					}
					ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
					defer cancel()
					began := time.Now()
					if got := p.Wait(ctx); got != tc.left {
						t.Errorf("%d have not promised, want %d", got, tc.left)
					}
					want := map[string]time.Duration{"before": 0, "meanwhile": time.Second}[when]
					if tc.left > 0 {
						want = 2 * time.Second
					}
					if took := time.Since(began); took != want {
						t.Errorf("it waits for %s, want %s", took, want)
					}
					p.Leave("a") // late
				})
			})
		}
	}
}

// TestPromisesAreAskedForAgain: those of before are too short.
func TestPromisesAreAskedForAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := new(Promises[string])
		wait := func(until limiter.Instant, do func()) int {
			p.Ask(until)
			p.Join("a")
			do()
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			defer cancel()
			return p.Wait(ctx)
		}
		if got := wait(7, func() { p.Make("a", 6) }); got != 1 {
			t.Errorf("%d have not promised, want 1", got)
		}
		if got := wait(9, func() { p.Make("a", 7) }); got != 1 || p.Over(8) || !p.Over(9) {
			t.Errorf("%d have not promised, want 1; over at 8: %t, at 9: %t", got, p.Over(8), p.Over(9))
		}
		if got := wait(11, func() { p.Make("a", 11) }); got != 0 {
			t.Errorf("%d have not promised, want none", got)
		}
	})
}

func TestNothingIsServedFromTheEndOfPromisesOn(t *testing.T) {
	p := new(Promises[string])
	if p.Join("a") != 0 || p.Wait(t.Context()) != 0 || p.Over(limiter.MaxInstant) {
		t.Error("promises are waited for that nobody asked for")
	}
	p.Ask(7)
	for at, want := range map[limiter.Instant]bool{6: false, 7: true, 8: true} {
		if got := p.Over(at); got != want {
			t.Errorf("at %d it is over: %t, want %t", at, got, want)
		}
	}
}
