package storetest

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/weir-dev/weir/pkg/limiter"
	"github.com/weir-dev/weir/pkg/store"
)

// A Strategy is an empty store that grants by a rule of its own rather than by
// limiter.Params.Step, and what can be done to it.
type Strategy struct {
	Store Store
	// Params are what the store is asked with, and Most is the most that it grants of one
	// window of the first rate, at least 1.
	Params limiter.Params
	Most   int64
	// Advance blocks until the store's clock has moved by at least d.
	Advance func(d limiter.Micros)
	// Counters returns how many counters the store keeps; nil when it does not say.
	Counters func() int
}

// RunStrategy holds a strategy to what twotier.Limiter relies on, whatever the rule is by
// which it grants. Each test starts a strategy of its own.
func RunStrategy(t *testing.T, start func(t *testing.T) Strategy) {
	for name, holds := range strategyRules {
		t.Run(name, func(t *testing.T) {
			s := start(t)
			if err := errors.Join(s.Params.Validate(), holds(s, t.Context())); err != nil {
				t.Error(err)
			}
		})
	}
}

// strategyRules return how a strategy breaks them.
var strategyRules = map[string]func(Strategy, context.Context) error{
	"a grant is nothing or what is of use":         Strategy.grantsWhatIsOfUse,
	"a grant says what it is charged to, and ends": Strategy.grantsEnd,
	"no window grants more than it may":            Strategy.keepsToWindows,
	"calls at once get what calls in turn do":      Strategy.isAtomic,
	"a refusal says until when":                    Strategy.saysUntilWhen,
	"a peek changes nothing":                       Strategy.peeksChangeNothing,
	"a return counts once and in its window":       Strategy.takesBackOnce,
	"counters do not see each other":               Strategy.keepsCountersApart,
	"a call whose context is done is unavailable":  Strategy.isUnavailable,
	"a command that no caller may send is refused": Strategy.refusesNonsense,
}

// named is the key of a counter.
func named(name string) store.Key { return key(store.HashValue(name)) }

// ask runs a command that has to be answered.
func (s Strategy) ask(ctx context.Context, name string, c limiter.Command) (limiter.Result, error) {
	res, err := s.Store.Apply(ctx, named(name), s.Params, c)
	if err != nil {
		return res, fmt.Errorf("%+v: %w", c, err)
	}
	return res, nil
}

// tally is what each window granted.
type tally map[int64]int64

// spend takes a unit at a time, until that is refused or n are granted.
func (s Strategy) spend(ctx context.Context, name string, n int64, by tally) (last limiter.Result, err error) {
	for range n {
		if last, err = s.ask(ctx, name, take(1, 1)); err != nil || last.Granted == 0 {
			return last, err
		}
		by[last.Windows.Open[0].Index] += last.Granted
	}
	return last, nil
}

// within reports a window that granted more than it may.
func (s Strategy) within(by tally) error {
	for index, n := range by {
		if n > s.Most {
			return fmt.Errorf("window %d granted %d, and may grant %d", index, n, s.Most)
		}
	}
	return nil
}
