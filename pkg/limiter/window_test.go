package limiter_test

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/weir-dev/weir/pkg/limiter"
)

// Rates of the tables. At instant 1250 the short window is number 12 and ends in
// 50, the long one is number 1 and ends in 750.
const (
	short = limiter.Micros(100)
	long  = limiter.Micros(1000)
	at    = limiter.Instant(1250)
)

func rate(limit int64, window limiter.Micros) limiter.Rate {
	return limiter.Rate{Limit: limit, Window: window}
}

func params(generation int64, rates ...limiter.Rate) limiter.Params {
	return limiter.Params{Generation: generation, Rates: rates}
}

func window(limit int64, length limiter.Micros, index, granted int64) limiter.OpenWindow {
	return limiter.OpenWindow{Rate: rate(limit, length), Index: index, Granted: granted}
}

func windows(list ...limiter.OpenWindow) limiter.Windows {
	w := limiter.Windows{N: len(list)}
	copy(w.Open[:], list)
	return w
}

func state(generation int64, list ...limiter.OpenWindow) limiter.State {
	s := limiter.State{Generation: generation, N: len(list)}
	for i, w := range list {
		s.Meters[i] = limiter.Meter{Rate: w.Rate, Index: w.Index, Used: w.Granted}
	}
	if s.N > 0 {
		s.Pulse = slices.MinFunc(list, func(a, b limiter.OpenWindow) int { return int(a.Window - b.Window) }).Index
	}
	return s
}

// firstEnd returns the end of the window that ends first.
func firstEnd(s limiter.State) limiter.Instant {
	w := s.Windows(at)
	return slices.MinFunc(w.Slice(), func(a, b limiter.OpenWindow) int { return int(a.End() - b.End()) }).End()
}

func take(low, high int64) limiter.Command { return limiter.Command{Min: low, Want: high} }

func giveBack(amount int64, list ...limiter.OpenWindow) limiter.Command {
	return limiter.Command{Op: limiter.Return, Want: amount, Windows: windows(list...)}
}

func remembering(c limiter.Command, m limiter.Memory) limiter.Command {
	c.Memory = m
	return c
}

// A stepCase is one call of Step. Result.Now and Result.Windows are always the
// call's instant and the next state's windows, so the tables leave them out.
type stepCase struct {
	params  limiter.Params
	state   limiter.State
	command limiter.Command
	want    limiter.Result
	next    limiter.State
}

func (c stepCase) run(t *testing.T) {
	t.Helper()
	c.want.Now, c.want.Windows = at, c.next.Windows(at)
	next, got := c.params.Step(c.state, at, c.command)
	if c.want.Reason != limiter.StaleGeneration && c.want.Reason != limiter.ClockBehind {
		c.want.Limit, c.want.ResetAfter = got.Limit, got.ResetAfter // see TestResultsDescribeTheBindingRate
		c.want.ExpiresIn = firstEnd(c.next).Sub(at)
	}
	if diff := cmp.Diff(c.want, got); diff != "" {
		t.Errorf("result (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(c.next, next); diff != "" {
		t.Errorf("state (-want +got):\n%s", diff)
	}
}

func TestTake(t *testing.T) {
	one := params(1, rate(10, short))
	for name, c := range map[string]stepCase{
		"a key never seen has the whole limit": {
			one, state(0), take(1, 4),
			limiter.Result{Granted: 4, Remaining: 6},
			state(1, window(10, short, 12, 4)),
		},
		"a lease gets what is left, down to its minimum": {
			one, state(1, window(10, short, 12, 8)), take(2, 4),
			limiter.Result{Granted: 2, Remaining: 0},
			state(1, window(10, short, 12, 10)),
		},
		"a lease gets nothing below its minimum": {
			one, state(1, window(10, short, 12, 8)), take(3, 4),
			limiter.Result{Reason: limiter.Exhausted, Remaining: 2, RetryAfter: 50},
			state(1, window(10, short, 12, 8)),
		},
		"a window that ended counts no more": {
			one, state(1, window(10, short, 11, 10)), take(1, 1),
			limiter.Result{Granted: 1, Remaining: 9},
			state(1, window(10, short, 12, 1)),
		},
		"every rate has to agree, and the first to end bounds the grant": {
			params(1, rate(10, short), rate(12, long)),
			state(1, window(10, short, 12, 0), window(12, long, 1, 9)), take(1, 5),
			limiter.Result{Granted: 3, Remaining: 0},
			state(1, window(10, short, 12, 3), window(12, long, 1, 12)),
		},
		"the last full window says when to come again": {
			params(1, rate(10, short), rate(12, long)),
			state(1, window(10, short, 12, 10), window(12, long, 1, 12)), take(1, 5),
			limiter.Result{Reason: limiter.Exhausted, RetryAfter: 750},
			state(1, window(10, short, 12, 10), window(12, long, 1, 12)),
		},
		"more than a limit is never granted, and never worth a retry": {
			one, state(1, window(10, short, 12, 0)), take(11, 20),
			limiter.Result{Reason: limiter.TooLarge, Remaining: 10},
			state(1, window(10, short, 12, 0)),
		},
		"parameters older than the state are refused and change nothing": {
			one, state(2, window(5, long, 1, 1)), take(1, 1),
			limiter.Result{Reason: limiter.StaleGeneration},
			state(2, window(5, long, 1, 1)),
		},
		"before a window already served nothing is granted until the last of them begins": {
			params(1, rate(10, short), rate(12, long)),
			state(1, window(10, short, 21, 0), window(12, long, 2, 0)), take(1, 1),
			limiter.Result{Reason: limiter.ClockBehind, RetryAfter: 850},
			state(1, window(10, short, 21, 0), window(12, long, 2, 0)),
		},
		"before an edit changed the algorithm nothing is granted, since its windows are not known any more": {
			one,
			limiter.State{Generation: 1, Began: 1251},
			take(1, 1),
			limiter.Result{Reason: limiter.ClockBehind, RetryAfter: 1},
			limiter.State{Generation: 1, Began: 1251},
		},
		"before an instant the store has served nothing is granted": {
			one, state(0), remembering(take(1, 1), limiter.Memory{Latest: 1251}),
			limiter.Result{Reason: limiter.ClockBehind, RetryAfter: 1},
			state(0),
		},
		"before an instant that the holder knows the store's clock to have reached nothing is granted": {
			one, state(0),
			limiter.Command{Min: 1, Want: 1, Floor: 1251},
			limiter.Result{Reason: limiter.ClockBehind, RetryAfter: 1},
			state(0),
		},
		"from that instant on there is": {
			one, state(0),
			limiter.Command{Min: 1, Want: 1, Floor: 1250},
			limiter.Result{Reason: limiter.Granted, Granted: 1, Remaining: 9},
			state(1, window(10, short, 12, 1)),
		},
		"a window older than the memory grants nothing": {
			one, state(0), remembering(take(1, 1), limiter.Memory{Since: 1201}),
			limiter.Result{Reason: limiter.Amnesia, RetryAfter: 50},
			state(1, window(10, short, 12, 0)),
		},
		"a window that begins with the memory is remembered": {
			one, state(0), remembering(take(1, 1), limiter.Memory{Since: 1200, Latest: 1250}),
			limiter.Result{Granted: 1, Remaining: 9},
			state(1, window(10, short, 12, 1)),
		},
		"a window that began in a gap grants nothing": {
			one, state(1, window(10, short, 12, 0)),
			remembering(take(1, 1), limiter.Memory{Gaps: []limiter.Gap{{From: 100, To: 200}, {From: 1200, To: 1201}}}),
			limiter.Result{Reason: limiter.Amnesia, RetryAfter: 50},
			state(1, window(10, short, 12, 0)),
		},
		"windows around gaps are remembered": {
			one, state(0),
			remembering(take(1, 1), limiter.Memory{Gaps: []limiter.Gap{{From: 1100, To: 1200}, {From: 1201, To: 1240}}}),
			limiter.Result{Granted: 1, Remaining: 9},
			state(1, window(10, short, 12, 1)),
		},
		"an old window and a full one both have to end": {
			params(1, rate(10, short), rate(12, long)), state(1, window(10, short, 12, 0), window(12, long, 1, 12)),
			remembering(take(1, 1), limiter.Memory{Gaps: []limiter.Gap{{From: 1200, To: 1201}}}),
			limiter.Result{Reason: limiter.Amnesia, RetryAfter: 750},
			state(1, window(10, short, 12, 0), window(12, long, 1, 12)),
		},
	} {
		t.Run(name, c.run)
	}
}

func TestPolicyEdits(t *testing.T) {
	for name, c := range map[string]stepCase{
		"a raised limit keeps the count": {
			params(2, rate(15, short)), state(1, window(10, short, 12, 10)), take(1, 9),
			limiter.Result{Granted: 5, Remaining: 0},
			state(2, window(15, short, 12, 15)),
		},
		"a lowered limit takes effect at once and revokes nothing": {
			params(2, rate(4, short)), state(1, window(10, short, 12, 6)), take(1, 1),
			limiter.Result{Reason: limiter.Exhausted, RetryAfter: 50},
			state(2, window(4, short, 12, 6)),
		},
		"a new length waits for the old window, which keeps its limit": {
			params(2, rate(3, short)), state(1, window(10, long, 1, 9)), take(1, 3),
			limiter.Result{Granted: 1, Remaining: 0},
			state(2, window(10, long, 1, 10)),
		},
		"a new length begins when the old window has ended": {
			params(2, rate(20, long)), state(1, window(10, short, 11, 10)), take(1, 20),
			limiter.Result{Granted: 20, Remaining: 0},
			state(2, window(20, long, 1, 20)),
		},
		"a rate that stays goes on beside one that was dropped": {
			params(2, rate(10, short)), state(1, window(10, short, 11, 10), window(50, long, 1, 48)), take(1, 10),
			limiter.Result{Granted: 2, Remaining: 0},
			state(2, window(10, short, 12, 2), window(50, long, 1, 50)),
		},
		"a rate that comes back inside its window finds its count": {
			params(3, rate(10, long)), state(2, window(10, long, 1, 10)), take(1, 1),
			limiter.Result{Reason: limiter.Exhausted, RetryAfter: 750},
			state(3, window(10, long, 1, 10)),
		},
		"rates in another order keep their counts": {
			params(2, rate(12, long), rate(10, short)),
			state(1, window(10, short, 12, 1), window(12, long, 1, 2)), take(1, 1),
			limiter.Result{Granted: 1, Remaining: 8},
			state(2, window(12, long, 1, 3), window(10, short, 12, 2)),
		},
	} {
		t.Run(name, c.run)
	}
}

func TestReturn(t *testing.T) {
	one := params(1, rate(10, short))
	held := state(1, window(10, short, 12, 6))
	forfeited := func(remaining int64) limiter.Result {
		return limiter.Result{Reason: limiter.Forfeited, Remaining: remaining}
	}
	for name, c := range map[string]stepCase{
		"a return in its windows is taken off": {
			one, held, giveBack(4, window(10, short, 12, 5)),
			limiter.Result{Granted: 4, Remaining: 8},
			state(1, window(10, short, 12, 2)),
		},
		"a return takes off every rate": {
			params(1, rate(10, short), rate(12, long)), state(1, window(10, short, 12, 6), window(12, long, 1, 7)),
			giveBack(4, window(10, short, 12, 0), window(12, long, 1, 0)),
			limiter.Result{Granted: 4, Remaining: 8},
			state(1, window(10, short, 12, 2), window(12, long, 1, 3)),
		},
		"a return of more than was granted is forfeited whole": {
			one, held, giveBack(7, window(10, short, 12, 5)), forfeited(4), held,
		},
		"a return from an earlier window is forfeited": {
			one, held, giveBack(4, window(10, short, 11, 5)), forfeited(4), held,
		},
		"a return into a window that ended meanwhile is forfeited": {
			one, state(1, window(10, short, 11, 6)), giveBack(4, window(10, short, 11, 6)),
			forfeited(10), state(1, window(10, short, 12, 0)),
		},
		"a return from a window of another length is forfeited": {
			one, held, giveBack(4, window(10, long, 12, 5)), forfeited(4), held,
		},
		"a return from other rates than are open is forfeited": {
			params(2, rate(10, short), rate(12, long)), held, giveBack(4, window(10, short, 12, 5)),
			forfeited(4), state(2, window(10, short, 12, 6), window(12, long, 1, 0)),
		},
		"a return into a window older than the memory is forfeited": {
			one, held, remembering(giveBack(4, window(10, short, 12, 5)), limiter.Memory{Since: 1201}), forfeited(0), held,
		},
		"a return under parameters older than the state is refused": {
			params(0, rate(10, short)), held, giveBack(4, window(10, short, 12, 5)),
			limiter.Result{Reason: limiter.StaleGeneration},
			held,
		},
		"a return before a window already served is refused": {
			one, state(1, window(10, short, 13, 6)), giveBack(4, window(10, short, 12, 5)),
			limiter.Result{Reason: limiter.ClockBehind, RetryAfter: 50},
			state(1, window(10, short, 13, 6)),
		},
	} {
		t.Run(name, c.run)
	}
}

func TestStepPanicsOnAnUnknownOp(t *testing.T) {
	defer func() {
		if recover() == nil {
			t.Error("Step did not panic")
		}
	}()
	params(1, rate(1, short)).Step(state(0), at, limiter.Command{Op: 9})
}

// A state is kept for longer than what was granted counts.
func TestCounts(t *testing.T) {
	for name, c := range map[string]struct {
		state limiter.State
		want  bool
	}{
		"nothing of a key never seen":         {state(1), false},
		"what was granted in an open window":  {state(1, window(1, short, 12, 0), window(1, long, 1, 0)), true},
		"nothing of a window that has ended":  {state(1, window(1, short, 11, 0)), false},
		"what was granted in one that is not": {state(1, window(1, short, 40, 0)), true},
	} {
		if got := c.state.Counts(at); got != c.want {
			t.Errorf("%s: %t (to be kept for %d)", name, got, c.state.KeepFor(at))
		}
	}
}

func TestKeepFor(t *testing.T) {
	for name, c := range map[string]struct {
		state limiter.State
		want  limiter.Micros
	}{
		"nothing for a key never seen":                {state(1), 0},
		"until the longest window ended twice over":   {state(1, window(1, short, 12, 0), window(1, long, 1, 0)), 1750},
		"by the end, not by the length":               {state(1, window(1, short, 40, 0), window(1, long, 1, 0)), 2950},
		"nothing for windows that ended twice before": {state(1, window(1, short, 10, 0)), 0},
	} {
		if got := c.state.KeepFor(at); got != c.want {
			t.Errorf("%s: got %d, want %d", name, got, c.want)
		}
	}
}
