package concurrency

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/weir-dev/weir/pkg/concurrency/adaptive"
	"github.com/weir-dev/weir/pkg/concurrency/pool"
	"github.com/weir-dev/weir/pkg/limiter"
)

// An outage is how a coordinator that granted 4 of 8 units ceases to.
var outages = map[string]struct {
	begin func(l *line)
	known bool // to be one
}{
	"cannot be reached":           {func(l *line) { l.err = errDown }, true},
	"does not answer":             {func(l *line) { l.deaf = true }, true},
	"fails by another's deadline": {func(l *line) { l.err = context.DeadlineExceeded }, false},
	"has a defect":                {func(l *line) { l.err = errDefect }, false},
	"forgot everything":           {func(l *line) { l.to = older }, false},
}

// older answers as a coordinator of an earlier term.
var older = answers(func(c pool.Command) (pool.Grant, error) {
	g, err := constant(8)(c)
	g.Term = 0
	return g, err
})

// inferring returns a configuration that infers a limit of 6.
func inferring(o OutageAction) Config {
	cfg := fixed("a", 8)
	cfg.Params.Min, cfg.Params.Initial = 1, 6
	cfg.Law = adaptive.Config{
		Algorithm: adaptive.AIMD, Min: 1, Max: 8, Initial: 6, Tolerance: 2, Backoff: 0.5,
		Baseline: adaptive.Baseline{Type: adaptive.Rolling, Samples: 100},
	}
	cfg.OnOutage, cfg.OnFenced = o, Abort
	return cfg
}

// TestOutage follows a holder through an outage.
func TestOutage(t *testing.T) {
	for name, tc := range outages {
		for _, action := range []OutageAction{FailClosed, LocalOnly} {
			t.Run(fmt.Sprintf("%s, action %d", name, action), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					l := newLine(part(4, 6))
					g := open(t, inferring(action), l)
					s := take(t, g, 1)
					l.set(func() { tc.begin(l) })
					local := tc.known && action == LocalOnly

					pass(lifetime(2*limiter.Second) - 500*time.Millisecond - 1)
					if st := g.Stats(); st.Local || st.Ceiling != 4 {
						t.Errorf("while the share lasts: %+v", st)
					}
					pass(1)
					st := g.Stats()
					if st.Local != local || st.Fenced == local || st.Ceiling != map[bool]int64{true: 6}[local] {
						t.Errorf("after it: %+v", st)
					}
					if st.CoordinatorError == nil && name != "does not answer" {
						t.Error("no error says why")
					}
					select {
					case <-s[0].Fenced():
						if local {
							t.Error("a holder that goes on by itself ended what it had in flight")
						}
					default:
						if !local {
							t.Error("a holder that may not go on did not end what it had in flight")
						}
					}
					release(s)
					more := fill(t, g)
					if len(more) != map[bool]int{true: 6}[local] {
						t.Errorf("%d admitted after the share expired", len(more))
					}
					if c := l.last(t); c.Held != 4 {
						t.Errorf("the last beat before said %d held, want 4", c.Held)
					}
					pass(3 * time.Second)
					if c := l.last(t); c.Held != 0 || c.Applied != 1 || c.InFlight != int64(len(more)) {
						t.Errorf("a beat without a share: %+v", c)
					}
					release(more)
					l.set(func() { l.to, l.err, l.deaf = constant(4), nil, false })
					pass(1100 * time.Millisecond)
					if st := g.Stats(); st.Local || st.Fenced || st.CoordinatorError != nil || st.Share != 4 {
						t.Errorf("after an answer: %+v", st)
					}
				})
			})
		}
	}
}

func TestHolderThatNeverHadAShare(t *testing.T) {
	for name, tc := range map[string]struct {
		begin  func(l *line)
		action OutageAction
		after  time.Duration
		want   Verdict
	}{
		"is not answered yet":                           {func(l *line) { l.deaf = true }, FailClosed, 0, Unassigned},
		"is not answered":                               {func(l *line) { l.deaf = true }, FailClosed, time.Minute, Unassigned},
		"is not answered yet, and may go on by itself":  {func(l *line) { l.deaf = true }, LocalOnly, 99 * time.Millisecond, Unassigned},
		"is not answered, and may go on by itself":      {func(l *line) { l.deaf = true }, LocalOnly, 100 * time.Millisecond, Admitted},
		"finds no coordinator, and may go on by itself": {func(l *line) { l.err = errDown }, LocalOnly, 0, Admitted},
		"meets with a defect, and may go on by itself":  {func(l *line) { l.err = errDefect }, LocalOnly, time.Minute, Unassigned},
		"is refused its term, and may go on by itself":  {func(l *line) { l.err = &pool.BehindError{Term: 2} }, LocalOnly, time.Minute, Unassigned},
		"finds no coordinator":                          {func(l *line) { l.err = errDown }, FailClosed, time.Minute, Unassigned},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				l := newLine(constant(4))
				tc.begin(l)
				g := open(t, inferring(tc.action), l)
				pass(tc.after)
				s, v := g.Acquire(t.Context(), Request{})
				if v != tc.want {
					t.Errorf("%v, want %v", v, tc.want)
				}
				if st := g.Stats(); st.Fenced {
					t.Error("fenced without ever having had a share")
				}
				s.Release(Ignored)
			})
		})
	}
}

// TestRequestsThatWaitGoOnWithAnOutage has the end of a small share raise the ceiling.
func TestRequestsThatWaitGoOnWithAnOutage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLine(part(1, 6))
		cfg := inferring(LocalOnly)
		cfg.Slots.Queue.MaxLength, cfg.Slots.Queue.MaxWait = 1, 10*limiter.Second
		g := open(t, cfg, l)
		s := take(t, g, 1)
		l.set(func() { l.deaf = true })
		began := time.Now()
		waited, v := g.Acquire(t.Context(), Request{})
		if took := time.Since(began); v != Admitted || took != lifetime(2*limiter.Second)-500*time.Millisecond {
			t.Errorf("%v after %v", v, took)
		}
		waited.Release(Served)
		release(s)
	})
}

// TestRequestsThatWaitGoOnWhenTheCoordinatorIsSilent has it never answer.
func TestRequestsThatWaitGoOnWhenTheCoordinatorIsSilent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLine(nil)
		l.deaf = true
		cfg := inferring(LocalOnly)
		cfg.Slots.Queue.MaxLength, cfg.Slots.Queue.MaxWait = 1, 10*limiter.Second
		g := open(t, cfg, l)
		began := time.Now()
		s, v := g.Acquire(t.Context(), Request{})
		if took := time.Since(began); v != Admitted || took != 100*time.Millisecond {
			t.Errorf("%v after %v", v, took)
		}
		s.Release(Served)
	})
}

// TestHolderGoesOnByItselfUntilItIsAnswered has calls hang, whatever their contexts say.
func TestHolderGoesOnByItselfUntilItIsAnswered(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLine(constant(4))
		l.there = time.Hour
		g := open(t, inferring(LocalOnly), l)
		pass(100 * time.Millisecond)
		for range 500 {
			if st := g.Stats(); !st.Local || st.Fenced {
				t.Fatalf("it stopped: %+v", st)
			}
			pass(10 * time.Millisecond)
		}
	})
}

func TestFailureIsThatOfTheLatestBeat(t *testing.T) {
	var l link
	l.fail(3, errDown)
	l.succeed(2)
	if l.cause == nil || !l.outage || l.failures != 1 {
		t.Errorf("the answer to an earlier beat hides that a later one failed: %+v", l)
	}
	l.fail(2, errDefect)
	if !errors.Is(l.cause, errDown) || l.failures != 1 {
		t.Errorf("an earlier beat counts after a later one: %+v", l)
	}
	l.succeed(4)
	l.fail(3, errDown)
	if l.cause != nil || l.outage || l.failures != 0 {
		t.Errorf("an earlier beat counts after a later one: %+v", l)
	}
}

// offsets returns when beats were sent after the first.
func (l *line) offsets() []time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	var out []time.Duration
	for _, s := range l.sent {
		out = append(out, s.Sub(l.sent[0]))
	}
	return out
}

func TestBeatsWhileTheCoordinatorFails(t *testing.T) {
	ms := func(n ...int) (out []time.Duration) {
		for _, d := range n {
			out = append(out, time.Duration(d)*time.Millisecond)
		}
		return out
	}
	for name, tc := range map[string]struct {
		begin func(l *line)
		want  []time.Duration
	}{
		"it answers":                   {func(*line) {}, ms(0, 1000, 2000, 3000)},
		"it fails at once":             {func(l *line) { l.err = errDown }, ms(0, 100, 300, 700, 1500, 2500, 3500)},
		"it is silent":                 {func(l *line) { l.deaf = true }, ms(0, 1000, 2000, 3000)},
		"its answers take 600 ms":      {func(l *line) { l.back = 600 * time.Millisecond }, ms(0, 1000, 2000, 3000)},
		"its answers take 1.3 seconds": {func(l *line) { l.back = 1300 * time.Millisecond }, ms(0, 1000, 2000, 3000)},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				l := newLine(constant(4))
				tc.begin(l)
				cfg := eager("a", 4)
				cfg.Params.TTL = 5 * limiter.Second
				open(t, cfg, l)
				pass(3600 * time.Millisecond)
				if diff := cmp.Diff(tc.want, l.offsets()); diff != "" {
					t.Errorf("beats (-want +got):\n%s", diff)
				}
			})
		})
	}
}

// TestOneBeatAtATime gives a guard reason to beat while an answer is on the way.
func TestOneBeatAtATime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLine(part(1, 8))
		l.back = 300 * time.Millisecond
		g := open(t, eager("a", 8), l)
		for range 80 {
			pass(10 * time.Millisecond)
			release(fill(t, g))
		}
		want := []time.Duration{0, 300 * time.Millisecond, 600 * time.Millisecond}
		if diff := cmp.Diff(want, l.offsets()); diff != "" {
			t.Errorf("beats (-want +got):\n%s", diff)
		}
	})
}

// TestLateAnswerCounts has every answer arrive after its beat was given up.
func TestLateAnswerCounts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLine(constant(4))
		l.back = 1300 * time.Millisecond
		cfg := fixed("a", 4)
		cfg.Params.TTL = 5 * limiter.Second
		g := open(t, cfg, newLine(answers(func(c pool.Command) (pool.Grant, error) {
			grant, err := l.Apply(context.Background(), pool.Key{}, pool.Params{}, c)
			grant.TTL = 5 * limiter.Second
			return grant, err
		})))
		pass(1200 * time.Millisecond)
		expect(t, g, Unassigned)
		for range 10 {
			pass(time.Second)
			release(take(t, g, 4))
		}
	})
}
