package storetest

import (
	"context"
	"errors"
	"testing"

	"github.com/weir-dev/weir/pkg/limiter"
	"github.com/weir-dev/weir/pkg/store"
)

// A stepper is a strategy that steps, at its own time, in one goroutine after another.
type stepper struct {
	now    limiter.Instant
	params limiter.Params
	turn   chan map[store.Key]limiter.State
}

func newStepper(p limiter.Params) *stepper {
	s := &stepper{now: 1_800_000_000_000_000, params: p, turn: make(chan map[store.Key]limiter.State, 1)}
	s.turn <- map[store.Key]limiter.State{}
	return s
}

func (s *stepper) Apply(ctx context.Context, k store.Key, p limiter.Params, c limiter.Command) (limiter.Result, error) {
	if err := errors.Join(p.Validate(), c.Validate()); err != nil {
		return limiter.Result{}, err
	}
	if err := ctx.Err(); err != nil {
		return limiter.Result{}, &store.UnavailableError{Store: "stepper", Cause: err}
	}
	states := <-s.turn
	defer func() { s.turn <- states }()
	next, res := p.Step(states[k], s.now, c)
	if c.Op != limiter.Peek {
		states[k] = next
	}
	return res, nil
}

// of returns the strategy, with answers that are changed by f.
func (s *stepper) of(f func(limiter.Command, limiter.Result) limiter.Result) Strategy {
	return Strategy{
		Store: changed{s, f}, Params: s.params, Most: s.params.MostPerWindow(s.params.Rates[0]),
		Advance:  func(d limiter.Micros) { s.now += limiter.Instant(d) },
		Counters: func() int { states := <-s.turn; defer func() { s.turn <- states }(); return len(states) },
	}
}

type changed struct {
	Store
	f func(limiter.Command, limiter.Result) limiter.Result
}

func (c changed) Apply(ctx context.Context, k store.Key, p limiter.Params, asked limiter.Command) (limiter.Result, error) {
	res, err := c.Store.Apply(ctx, k, p, asked)
	if err == nil {
		res = c.f(asked, res)
	}
	return res, err
}

func unchanged(_ limiter.Command, r limiter.Result) limiter.Result { return r }

func TestEveryAlgorithmIsAStrategy(t *testing.T) {
	rates := []limiter.Rate{{Limit: 20, Window: limiter.Second}}
	for name, p := range map[string]limiter.Params{
		"a window":         {Rates: rates},
		"a sliding window": {Algorithm: limiter.SlidingWindow, Rates: rates, Buckets: 5},
		"a sliding log":    {Algorithm: limiter.SlidingLog, Rates: rates, Lifetime: 100 * limiter.Millisecond},
		"a token bucket":   {Algorithm: limiter.TokenBucket, Rates: rates},
		"a leaky bucket":   {Algorithm: limiter.LeakyBucket, Rates: rates, MaxDelay: limiter.Second},
	} {
		t.Run(name, func(t *testing.T) {
			RunStrategy(t, func(*testing.T) Strategy { return newStepper(p).of(unchanged) })
		})
	}
}

// TestEveryRuleOfStrategiesHolds breaks each rule, and expects its test to find out.
func TestEveryRuleOfStrategiesHolds(t *testing.T) {
	p := limiter.Params{Rates: []limiter.Rate{{Limit: 20, Window: limiter.Second}}}
	answers := func(f func(limiter.Command, *limiter.Result)) func() Strategy {
		return func() Strategy {
			return newStepper(p).of(func(c limiter.Command, r limiter.Result) limiter.Result {
				f(c, &r)
				return r
			})
		}
	}
	asks := func(f func(*stepper, store.Key, *limiter.Command)) func() Strategy {
		return func() Strategy {
			s := newStepper(p)
			strategy := s.of(unchanged)
			strategy.Store = asked{s, f}
			return strategy
		}
	}
	for name, tc := range map[string]struct {
		rule  string
		start func() Strategy
	}{
		"more than is wanted": {"a grant is nothing or what is of use", answers(func(c limiter.Command, r *limiter.Result) { r.Granted = c.Want + 1 })},
		"less than is of use": {"a grant is nothing or what is of use", answers(func(c limiter.Command, r *limiter.Result) { r.Granted = min(r.Granted, 1) })},
		"all or nothing": {"a grant is nothing or what is of use", asks(func(_ *stepper, _ store.Key, c *limiter.Command) {
			if c.Op == limiter.Take {
				c.Min = c.Want
			}
		})},
		"a grant of no window":      {"a grant says what it is charged to, and ends", answers(func(_ limiter.Command, r *limiter.Result) { r.Windows = limiter.Windows{} })},
		"a grant of another window": {"a grant says what it is charged to, and ends", answers(func(_ limiter.Command, r *limiter.Result) { r.Windows.Open[0].Index++ })},
		"a grant that outlives":     {"a grant says what it is charged to, and ends", answers(func(_ limiter.Command, r *limiter.Result) { r.ExpiresIn++; r.ExpiresIn += r.ResetAfter })},
		"a window with more": {"no window grants more than it may", asks(func(s *stepper, k store.Key, _ *limiter.Command) {
			states := <-s.turn
			delete(states, k)
			s.turn <- states
		})},
		"calls at once that do not count": {"calls at once get what calls in turn do", asks(func(s *stepper, k store.Key, _ *limiter.Command) {
			if k == named("at once") {
				states := <-s.turn
				delete(states, k)
				s.turn <- states
			}
		})},
		"a window that never ends": {"no window grants more than it may", func() Strategy {
			s := newStepper(p).of(unchanged)
			s.Advance = func(limiter.Micros) {}
			return s
		}},
		"no time of a refusal": {"a refusal says until when", answers(func(_ limiter.Command, r *limiter.Result) { r.RetryAfter = 0 })},
		"too short a time":     {"a refusal says until when", answers(func(_ limiter.Command, r *limiter.Result) { r.RetryAfter = 1 })},
		"a peek that takes": {"a peek changes nothing", asks(func(_ *stepper, _ store.Key, c *limiter.Command) {
			if c.Op == limiter.Peek {
				c.Op = limiter.Take
			}
		})},
		"a peek that guesses": {"a peek changes nothing", answers(func(c limiter.Command, r *limiter.Result) {
			if c.Op == limiter.Peek {
				r.Granted--
			}
		})},
		"a return that counts in any window": {"a return counts once and in its window", asks(func(s *stepper, _ store.Key, c *limiter.Command) {
			if c.Op == limiter.Return {
				c.Windows.Open[0] = c.Windows.Open[0].WindowAt(s.now)
			}
		})},
		"a return of a part": {"a return counts once and in its window", asks(func(_ *stepper, _ store.Key, c *limiter.Command) {
			if c.Op == limiter.Return {
				c.Want = 1
			}
		})},
		"one counter for all": {"counters do not see each other", func() Strategy {
			s := newStepper(p).of(unchanged)
			s.Store = together{s.Store}
			return s
		}},
	} {
		t.Run(name, func(t *testing.T) {
			if err := strategyRules[tc.rule](tc.start(), t.Context()); err == nil {
				t.Errorf("the test of %q did not find it out", tc.rule)
			}
		})
	}
}

// asked changes what its stepper is asked for.
type asked struct {
	*stepper
	f func(*stepper, store.Key, *limiter.Command)
}

func (a asked) Apply(ctx context.Context, k store.Key, p limiter.Params, c limiter.Command) (limiter.Result, error) {
	a.f(a.stepper, k, &c)
	return a.stepper.Apply(ctx, k, p, c)
}

type together struct{ Store }

func (s together) Apply(ctx context.Context, _ store.Key, p limiter.Params, c limiter.Command) (limiter.Result, error) {
	return s.Store.Apply(ctx, store.Key{}, p, c)
}

// A careless strategy is not atomic, forgets the context and takes any command.
type careless struct{ stepper }

func (s *careless) Apply(_ context.Context, k store.Key, p limiter.Params, c limiter.Command) (limiter.Result, error) {
	states := <-s.turn
	was := states[k]
	s.turn <- states
	if c.Op > limiter.Reset || c.Min < 1 || c.Want < c.Min {
		return limiter.Result{}, nil
	}
	next, res := p.Step(was, s.now, c)
	states = <-s.turn
	states[k] = next
	s.turn <- states
	return res, nil
}

func TestACarelessStrategyIsFoundOut(t *testing.T) {
	p := limiter.Params{Rates: []limiter.Rate{{Limit: 20, Window: limiter.Second}}}
	start := func() Strategy {
		s := newStepper(p)
		strategy := s.of(unchanged)
		strategy.Store = &careless{*s}
		return strategy
	}
	for _, rule := range []string{"a call whose context is done is unavailable", "a command that no caller may send is refused"} {
		if err := strategyRules[rule](start(), t.Context()); err == nil {
			t.Errorf("the test of %q did not find it out", rule)
		}
	}
}
