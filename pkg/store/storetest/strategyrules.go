package storetest

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/google/go-cmp/cmp"

	"github.com/weir-dev/weir/pkg/limiter"
	"github.com/weir-dev/weir/pkg/store"
)

// broken returns the error of a call, or else says how a rule is broken.
func broken(err error, format string, args ...any) error {
	if err != nil {
		return err
	}
	return fmt.Errorf(format, args...)
}

func (s Strategy) grantsWhatIsOfUse(ctx context.Context) error {
	for i := range 3 * s.Most {
		c := take(1+i%3, 1+i%3+i%5)
		res, err := s.ask(ctx, "amounts", c)
		switch {
		case err != nil:
			return err
		case res.Granted != 0 && (res.Granted < c.Min || res.Granted > c.Want):
			return fmt.Errorf("%d granted, want 0 or %d to %d", res.Granted, c.Min, c.Want)
		case (res.Granted > 0) != (res.Reason == limiter.Granted):
			return fmt.Errorf("%d granted with the reason %v", res.Granted, res.Reason)
		case res.Remaining < 0:
			return fmt.Errorf("%d remain", res.Remaining)
		}
	}
	res, err := s.ask(ctx, "all at once", take(1, 2*s.Most))
	if err == nil && res.Granted == 0 {
		err = errors.New("a lease of more than there is got nothing, want a part")
	}
	return err
}

func (s Strategy) grantsEnd(ctx context.Context) error {
	res, err := s.ask(ctx, "end", take(1, 1))
	if err != nil {
		return err
	}
	if err := res.Windows.Validate(); err != nil {
		return fmt.Errorf("the grant is charged to no window: %w", err)
	}
	for _, w := range res.Windows.Slice() {
		left := w.End().Sub(res.Now)
		switch {
		case !w.Contains(res.Now):
			return fmt.Errorf("granted at %d, outside of its window, %d to %d", res.Now, w.Start(), w.End())
		case res.Algorithm.WindowCoupled() && (res.ExpiresIn <= 0 || res.ExpiresIn > left):
			return fmt.Errorf("the grant expires in %dµs, and its window ends in %dµs", res.ExpiresIn, left)
		}
	}
	return nil
}

func (s Strategy) keepsToWindows(ctx context.Context) error {
	by := tally{}
	for range 3 {
		last, err := s.spend(ctx, "windows", 3*s.Most, by)
		if err != nil {
			return err
		}
		s.Advance(last.Windows.Open[0].End().Sub(last.Now))
	}
	if len(by) < 2 { // what was granted in one may count in the next
		return fmt.Errorf("%d of 3 windows granted something", len(by))
	}
	return s.within(by)
}

func (s Strategy) isAtomic(ctx context.Context) error {
	const callers = 200
	inTurn, atOnce := tally{}, tally{}
	if _, err := s.spend(ctx, "in turn", callers, inTurn); err != nil {
		return err
	}
	var mu sync.Mutex
	var all sync.WaitGroup
	var failed error
	for range callers {
		all.Go(func() {
			res, err := s.ask(ctx, "at once", take(1, 1))
			mu.Lock()
			defer mu.Unlock()
			if failed = errors.Join(failed, err); res.Granted > 0 {
				atOnce[res.Windows.Open[0].Index] += res.Granted
			}
		})
	}
	all.Wait()
	if len(inTurn) == 1 && len(atOnce) == 1 && failed == nil {
		if d := cmp.Diff(inTurn, atOnce); d != "" {
			return fmt.Errorf("windows grant others at once (-in turn +at once):\n%s", d)
		}
	}
	return errors.Join(failed, s.within(atOnce))
}

func (s Strategy) saysUntilWhen(ctx context.Context) error {
	last, err := s.spend(ctx, "until when", 1000*s.Most, tally{})
	switch {
	case err != nil:
		return err
	case last.Granted > 0:
		return errors.New("nothing is ever refused")
	case last.RetryAfter <= 0:
		return fmt.Errorf("refused as %v without saying until when", last.Reason)
	}
	s.Advance(last.RetryAfter)
	if res, err := s.ask(ctx, "until when", take(1, 1)); err != nil || res.Granted == 0 {
		return broken(err, "refused once more after %dµs: %v", last.RetryAfter, res.Reason)
	}
	return nil
}

func (s Strategy) peeksChangeNothing(ctx context.Context) error {
	c := take(1, s.Most)
	c.Op = limiter.Peek
	before := 0
	if s.Counters != nil {
		before = s.Counters()
	}
	first, err := s.ask(ctx, "peek", c)
	if err != nil {
		return err
	}
	if s.Counters != nil && s.Counters() != before {
		return errors.New("a peek made a counter")
	}
	again, err := s.ask(ctx, "peek", c)
	if err != nil || again.Granted != first.Granted || again.Remaining != first.Remaining {
		return broken(err, "a second peek says %d of %d, the first %d of %d", again.Granted, again.Remaining, first.Granted, first.Remaining)
	}
	c.Op = limiter.Take
	if res, err := s.ask(ctx, "peek", c); err != nil || res.Granted != first.Granted {
		return broken(err, "a peek foresaw %d, and %d were granted", first.Granted, res.Granted)
	}
	return nil
}

func (s Strategy) takesBackOnce(ctx context.Context) error {
	grant, err := s.ask(ctx, "return", take(1, s.Most))
	if err != nil {
		return err
	}
	back := limiter.Command{Op: limiter.Return, Want: grant.Granted + s.Most, Windows: grant.Windows, At: grant.Now}
	if res, err := s.ask(ctx, "return", back); err != nil || res.Granted != 0 {
		return broken(err, "%d came back of %d that were granted", res.Granted, grant.Granted)
	}
	back.Want = grant.Granted
	res, err := s.ask(ctx, "return", back)
	if err != nil || res.Granted != 0 && res.Granted != back.Want {
		return broken(err, "%d of %d came back", res.Granted, back.Want)
	}
	by := tally{grant.Windows.Open[0].Index: grant.Granted - res.Granted}
	last, err := s.spend(ctx, "return", 3*s.Most, by)
	if err != nil {
		return err
	}
	if back.Want = 1; grant.Algorithm.WindowCoupled() {
		s.Advance(last.Windows.Open[0].End().Sub(last.Now))
		if _, err := s.spend(ctx, "return", 1, by); err != nil {
			return err
		}
		if res, err := s.ask(ctx, "return", back); err != nil || res.Granted != 0 {
			return broken(err, "%d came back after their window was over", res.Granted)
		}
	}
	return s.within(by)
}

func (s Strategy) keepsCountersApart(ctx context.Context) error {
	if _, err := s.spend(ctx, "a", 3*s.Most, tally{}); err != nil {
		return err
	}
	if res, err := s.ask(ctx, "b", take(1, 1)); err != nil || res.Granted == 0 {
		return broken(err, "refused because of another counter: %v", res.Reason)
	}
	return nil
}

func (s Strategy) isUnavailable(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	cancel()
	_, err := s.ask(ctx, "done", take(1, 1))
	if _, ok := errors.AsType[*store.UnavailableError](err); !ok || !errors.Is(err, context.Canceled) {
		return fmt.Errorf("the error is %s, want a *store.UnavailableError because of the context's", fmt.Sprint(err))
	}
	return nil
}

func (s Strategy) refusesNonsense(ctx context.Context) error {
	for _, c := range []limiter.Command{take(0, 0), take(3, 2), take(1, -1), giveBack(-1, limiter.Windows{}), {Op: limiter.Reset + 1, Min: 1, Want: 1}} {
		_, err := s.ask(ctx, "nonsense", c)
		if _, away := errors.AsType[*store.UnavailableError](err); err == nil || away {
			return fmt.Errorf("%+v: the error is %s, want one that says what is wrong", c, fmt.Sprint(err))
		}
	}
	return nil
}
