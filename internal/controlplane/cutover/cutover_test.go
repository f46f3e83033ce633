package cutover

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/weir-dev/weir/pkg/limiter"
)

var (
	noon    = time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
	errAway = errors.New("connection refused")
)

func TestNext(t *testing.T) {
	const clock = limiter.Instant(1_800_000_000_000_000)
	serving := State{Phase: Serving, Since: noon.Add(-time.Hour)}
	draining := State{Phase: Draining, Since: noon.Add(-time.Second)}
	failed := State{Phase: Serving, Since: noon.Add(-10 * time.Second), Failed: 1}
	for name, c := range map[string]struct {
		state State
		view  View
		want  Step
	}{
		"nothing is wanted":            {serving, View{}, Step{State: serving}},
		"a state never written serves": {State{}, View{}, Step{State: State{Phase: Serving}}},
		"a holder lags":                {serving, View{Wanted: true, Lagging: "pod a"}, Step{State: serving}},
		"the new store is away":        {serving, View{Wanted: true, ClockErr: errAway}, Step{State: serving, Again: retryClock}},
		"all is ready": {
			serving,
			View{Wanted: true, Clock: clock},
			Step{State: State{Phase: Draining, Since: noon}, Again: drainTime},
		},
		"a move that failed just now": {failed, View{Wanted: true, Clock: clock}, Step{State: failed, Again: 20 * time.Second}},
		"a move that failed long ago": {
			State{Phase: Serving, Since: noon.Add(-time.Hour), Failed: 3},
			View{Wanted: true, Clock: clock},
			Step{State: State{Phase: Draining, Since: noon, Failed: 3}, Again: drainTime},
		},
		"what failed is forgotten when nothing is wanted": {failed, View{}, Step{State: State{Phase: Serving, Since: failed.Since}}},
		"a holder still asks the old store": {
			draining,
			View{Wanted: true, Lagging: "pod a", Clock: clock},
			Step{State: draining, Again: retryClock},
		},
		"all have drained": {
			draining,
			View{Wanted: true, Clock: clock},
			Step{State: State{Phase: Serving, Since: noon}, Moved: true, At: clock + 1},
		},
		"all have drained but the clock is not known": {
			draining,
			View{Wanted: true, ClockErr: errAway},
			Step{State: draining, Again: retryClock},
		},
		"draining takes too long": {
			State{Phase: Draining, Since: noon.Add(-drainTime), Failed: 1},
			View{Wanted: true, Lagging: "pod a"},
			Step{State: State{Phase: Serving, Since: noon, Failed: 2}, Again: 2 * firstRetry},
		},
		"which store served is not known, and a holder may still ask it": {
			draining,
			View{Wanted: true, Unknown: true, Lagging: "pod a"},
			Step{State: draining, Again: retryClock},
		},
		"there is no store to go back to, however long it takes": {
			State{Phase: Draining, Since: noon.Add(-time.Hour)},
			View{Wanted: true, Unknown: true, Lagging: "pod a"},
			Step{State: State{Phase: Draining, Since: noon.Add(-time.Hour)}, Again: retryClock},
		},
		"all let go of whatever served": {
			draining,
			View{Wanted: true, Unknown: true, Clock: clock},
			Step{State: State{Phase: Serving, Since: noon}, Moved: true, At: clock + 1},
		},
		"the same store answers with other credentials": {
			serving,
			View{Wanted: true, Same: true, Lagging: "pod a", Clock: clock},
			Step{State: serving, Moved: true},
		},
		"the same store does not answer with other credentials": {
			serving,
			View{Wanted: true, Same: true, ClockErr: errAway},
			Step{State: serving, Again: retryClock},
		},
		"an edit while draining names the old store, with other credentials": {
			draining,
			View{Wanted: true, Same: true, Lagging: "pod a", ClockErr: errAway},
			Step{State: State{Phase: Serving, Since: noon}, Again: retryClock},
		},
		"a move that failed and then names the same store": {
			failed,
			View{Wanted: true, Same: true, Clock: clock},
			Step{State: State{Phase: Serving, Since: failed.Since}, Moved: true},
		},
		"the edit is undone while draining": {draining, View{Lagging: "pod a"}, Step{State: State{Phase: Serving, Since: noon}}},
	} {
		t.Run(name, func(t *testing.T) {
			c.view.Now = noon
			got := Next(c.state, c.view)
			if diff := cmp.Diff(c.want, got, cmpopts.IgnoreFields(Step{}, "Message")); diff != "" {
				t.Errorf("step differs (-want +got):\n%s", diff)
			}
			if waits := c.view.Wanted && !got.Moved; waits != (got.Message != "") {
				t.Errorf("the message is %q", got.Message)
			}
		})
	}
}

// TestAMessageStaysWhileNothingChanges: each change of it is a write of the status.
func TestAMessageStaysWhileNothingChanges(t *testing.T) {
	failed := State{Phase: Serving, Since: noon, Failed: 2}
	var messages []string
	for second := range 3 {
		messages = append(messages, Next(failed, View{Now: noon.Add(time.Duration(second) * time.Second), Wanted: true}).Message)
	}
	if messages[0] != messages[1] || messages[1] != messages[2] || !strings.Contains(messages[0], "12:01:00 UTC") {
		t.Errorf("messages are %q", messages)
	}
}

// TestAMoveNeverServesTwoStores walks every order of events up to a depth and
// keeps a record of the holders that may still use the old store.
func TestAMoveNeverServesTwoStores(t *testing.T) {
	type world struct {
		State
		moved   bool
		holders [2]Phase // as each acknowledged; empty: asks the old store
		wanted  bool
		now     time.Duration
		reaches bool // the new store answers
	}
	var walk func(w world, depth int)
	seen := 0
	walk = func(w world, depth int) {
		seen++
		if depth == 0 || w.moved {
			return
		}
		for i := range w.holders { // a holder acknowledges what is published
			next := w
			next.holders[i] = w.Phase
			walk(next, depth-1)
		}
		for _, wanted := range []bool{true, false} {
			for _, pass := range []time.Duration{0, drainTime} {
				next := w
				next.wanted, next.now = wanted, w.now+pass
				v := View{Now: noon.Add(next.now), Wanted: wanted, Clock: 1}
				for _, h := range next.holders {
					if h != next.Phase {
						v.Lagging = "a holder"
					}
				}
				if !w.reaches {
					v.ClockErr = errAway
				}
				step := Next(next.State, v)
				next.State, next.moved = step.State, step.Moved
				for _, h := range next.holders {
					if step.Moved && h != Draining {
						t.Fatalf("moved while a holder asks the old store: %+v", w)
					}
				}
				walk(next, depth-1)
			}
		}
		w.reaches = !w.reaches
		walk(w, depth-1)
	}
	walk(world{State: State{Phase: Serving}, holders: [2]Phase{Serving, Serving}}, 7)
	t.Logf("%d states", seen)
}
