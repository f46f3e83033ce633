package leaders_test

import (
	"testing"
	"time"

	"github.com/weir-dev/weir/internal/controlplane/leadership"
	"github.com/weir-dev/weir/internal/proof/explore"
	"github.com/weir-dev/weir/pkg/limiter"
	"github.com/weir-dev/weir/pkg/store"
)

// A weakening takes one rule away. The shortest history that breaks the promise without it
// has that many steps.
type weakening struct {
	rule  string
	steps int
	of    *succession
}

func weak(change func(*rules), of *succession) *succession {
	change(&of.rules)
	return of
}

func weakenings() []weakening {
	crash := func(s *succession) { s.crashes = 1 }
	pair := func(s *succession) { s.crashes, s.holders = 1, 2 }
	set := func(s *succession) { s.crashes, s.sets, s.setBy, s.offsets = 1, 1, 4, ahead }
	gone := func(s *succession) { s.deleted, s.offsets = true, agree }
	order := func(s *succession) { s.orderly, s.offsets = true, agree }
	return []weakening{
		{"the clock of a leader starts after all that was served", 10, weak(func(r *rules) {
			r.start = func(wall, _ limiter.Instant) limiter.Instant { return wall }
		}, of(pair))},
		{"a renewal says what the clock of the leader shows", 14, weak(func(r *rules) {
			r.note = func(n leadership.Note) leadership.Note { n.Clock = 0; return n }
		}, of(set))},
		{"a leader may have served for as long as its renewal counts", 11, weak(func(r *rules) {
			r.past = func(n leadership.Note, _ limiter.Micros) leadership.Past { return n.Past(0) }
		}, of(crash))},
		{"a leader serves no instant beyond what it leased", 11, weak(func(r *rules) {
			r.covers = func(leadership.Renewal, limiter.Instant, time.Duration, time.Duration) bool { return true }
		}, of(crash))},
		{"a lease of the clock counts from when it was sent", 17, weak(func(r *rules) { r.byAnswer = true }, of(func(s *succession) { s.late, s.offsets, s.ticks = true, ahead, 5 }))},
		{"a memory serves what begins after it", 10, weak(func(r *rules) {
			r.begin = func(m memory) memory { m.known = limiter.Memory{}; return m }
		}, of(crash))},
		{"a leader that stops hands over what it granted", 9, weak(func(r *rules) {
			r.begin = func(m memory) memory { m.state = limiter.State{}; return m }
		}, of(order))},
		{"without a Lease another leader may go on", 9, weak(func(r *rules) {
			r.missed = func(leadership.Past, limiter.Micros) leadership.Past { return leadership.Past{} }
		}, of(gone))},
		{"a leader that did not renew in time does not lead on", 12, weak(func(r *rules) { r.revives = true }, of(gone))},
		{"holders pass on the newest instant that they know of the clock", 20, weak(floorless, of(unseen))},
	}
}

// floorless has holders pass nothing on of the store's clock.
func floorless(r *rules) { r.floor = func(store.Reading, int64) limiter.Instant { return 0 } }

// TestALeasedClockNeedsNoFloor has holders pass nothing on while the Lease is there: the
// same worlds are reached, because a leader's clock starts after all that was served.
func TestALeasedClockNeedsNoFloor(t *testing.T) {
	for _, m := range models()[:2] {
		t.Run(m.name, func(t *testing.T) {
			t.Parallel()
			if r := explore.Hold(t, weak(floorless, m.of).model(), nil); r.States != m.states {
				t.Errorf("%d states, want %d", r.States, m.states)
			}
		})
	}
}

func TestEveryRuleIsNeeded(t *testing.T) {
	for _, w := range weakenings() {
		t.Run(w.rule, func(t *testing.T) {
			explore.RefuteIn(t, w.of.model(), w.steps)
		})
	}
}
