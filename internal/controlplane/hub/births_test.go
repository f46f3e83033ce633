package hub

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/weir-dev/weir/pkg/federation/coordinator/kubernetes"
	"github.com/weir-dev/weir/pkg/federation/ledger"
	"github.com/weir-dev/weir/pkg/limiter"
	"github.com/weir-dev/weir/pkg/policy"
)

const day = 24 * 3600 * limiter.Second

// A cradle is the births of a hub, with a clock of its own.
type cradle struct {
	*Births
	t     *testing.T
	world *world
	clock *clocktesting.FakeClock
}

// newCradle has a process begin to lead.
func newCradle(t *testing.T, w *world, first bool) *cradle {
	c := &cradle{Births: NewBirths(w.maps), t: t, world: w, clock: w.clock}
	c.Births.clock = w.clock
	c.Begin(first)
	return c
}

func (c *cradle) enter(id string, window limiter.Micros) {
	c.t.Helper()
	if err := c.Enter(c.t.Context(), id, window); err != nil {
		c.t.Fatal(err)
	}
}

func (c *cradle) wants(id string, window limiter.Micros, known bool) {
	c.t.Helper()
	if got, err := c.Known(c.t.Context(), id, window); err != nil || got != known {
		c.t.Errorf("budget %s is known: %t, %v; want %t", id, got, err, known)
	}
}

// TestBirths writes births to a real API server.
func TestBirths(t *testing.T) {
	w := newWorld(t)
	c := newCradle(t, w, true)
	c.wants("a", day, false)
	c.enter("a", day)
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if err := c.Attend(ended, map[string]Part{"a": {Window: day}}, nil); err != nil {
		t.Errorf("the API server is asked when nothing is new: %v", err)
	}
	other := newCradle(t, w, false)
	other.wants("a", day, true)
	other.wants("b", day, false)
	other.enter("b", day)
	c.enter("c", day) // it has not read that
	other.wants("c", day, true)
	c.wants("b", day, true)

	// Births outlive the last window that a budget may have, and its longest one counts.
	c.enter("a", limiter.Second)
	c.enter("d", limiter.Second)
	attend := func(granted map[string]Part, kept map[string]limiter.Micros) {
		t.Helper()
		if err := c.Attend(t.Context(), granted, kept); err != nil {
			t.Fatal(err)
		}
	}
	w.clock.Step(3 * time.Hour)
	attend(nil, map[string]limiter.Micros{"b": day, "never kept": day})
	c.wants("a", day, true)
	c.wants("d", limiter.Second, false)
	c.wants("never kept", day, false)
	w.clock.Step(24 * time.Hour)
	attend(nil, nil)
	c.wants("a", day, false)
	c.wants("b", day, true)
	attend(map[string]Part{"of another hub": {Window: day}}, nil)
	c.wants("of another hub", day, true)
}

// TestBirthsThatAreLost deletes them: every budget may be an old one until a window began
// after that.
func TestBirthsThatAreLost(t *testing.T) {
	w := newWorld(t)
	c := newCradle(t, w, true)
	c.enter("a", day)
	if err := w.maps.Delete(t.Context(), BirthsConfigMap, metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	c.wants("a", day, true)
	c.wants("b", day, true)
	w.clock.Step(24 * time.Hour)
	c.wants("b", day, false)

	found, err := w.maps.Get(t.Context(), BirthsConfigMap, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for _, damage := range []string{"", "{}", "x"} {
		found.BinaryData = map[string][]byte{birthsKey: []byte(damage)}
		if found, err = w.maps.Update(t.Context(), found, metav1.UpdateOptions{}); err != nil {
			t.Fatal(err)
		}
		if known, err := c.Known(t.Context(), "b", day); err == nil || !strings.Contains(err.Error(), "delete it") {
			t.Errorf("%q: %t, %v", damage, known, err)
		}
	}
}

// TestANewBudgetIsServedAtOnce keeps budgets of a day in a real API server: one that is
// new, one that is deleted and applied again, with one more rate, one whose record somebody deletes, and one
// that this cluster was a member of before.
func TestANewBudgetIsServedAtOnce(t *testing.T) {
	w := newWorld(t)
	p := params(100, "a", "b")
	p.Window = day
	journal := NewJournal(w.maps)
	now := func() limiter.Instant { return limiter.Instant(w.clock.Now().UnixMicro()) }
	lead := func(first bool) *kubernetes.Coordinator {
		return kubernetes.New(kubernetes.Options{Journal: journal, Births: newCradle(t, w, first).Births, Clock: now})
	}
	wants := func(c *kubernetes.Coordinator, id string, seq, units int64, reason ledger.Reason) {
		t.Helper()
		cmd := lease("a", seq, units)
		cmd.Holder, cmd.Min = fmt.Sprint("h", seq), units
		g, err := c.Apply(t.Context(), id, p, cmd)
		if err != nil || g.Reason != reason {
			t.Errorf("budget %s: %+v, %v; want reason %d", id, g, err, reason)
		}
	}
	c := lead(true)
	wants(c, budgetID, 1, 5, ledger.Granted)
	wants(c, "record deleted", 1, 5, ledger.Granted)
	c.Seal(t.Context())

	elsewhere := newCradle(t, w, false)
	if err := elsewhere.Attend(t.Context(), map[string]Part{"member before": {Window: day}}, nil); err != nil {
		t.Fatal(err)
	}
	if err := w.maps.Delete(t.Context(), RecordName("record deleted"), metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	c = lead(false)
	wants(c, budgetID, 2, 90, ledger.Granted) // and finds its count
	wants(c, budgetID, 3, 6, ledger.Exhausted)
	wants(c, "record deleted", 2, 1, ledger.Amnesia)
	wants(c, "member before", 1, 1, ledger.Amnesia)
	wants(c, "another", 1, 100, ledger.Granted)

	w.budgets.drop(budgetID) // it is deleted, and applied again
	if err := (&Sweeper{Journal: journal, Budgets: w.budgets, Books: &books{}, Clock: w.clock}).sweep(t.Context()); err != nil {
		t.Fatal(err)
	}
	c = lead(false)
	wants(c, budgetID, 4, 1, ledger.Amnesia)
	p.Window *= 7 // a rate that it did not have
	wants(c, policy.RateID(budgetID, p.Window), 1, 100, ledger.Granted)
}

// TestWhichMemoryABudgetMet is written to a real API server, by two processes that do not
// know of each other.
func TestWhichMemoryABudgetMet(t *testing.T) {
	w := newWorld(t)
	part := Part{Window: day, Ledger: "redis|here", Members: []string{"a", "b"}}
	attend := func(c *cradle, part Part) {
		t.Helper()
		if err := c.Attend(t.Context(), map[string]Part{"a": part}, nil); err != nil {
			t.Fatal(err)
		}
	}
	meets := func(c *cradle, term, vouches int64) {
		t.Helper()
		b, err := c.Meet(t.Context(), "a", term)
		if born, _ := b.Vouch(part.Members); err != nil || born != vouches {
			t.Errorf("after memory %d: %+v, %v; want %d", term, b, err, vouches)
		}
	}
	c := newCradle(t, w, true)
	if _, err := c.Meet(t.Context(), "a", 7); err == nil {
		t.Error("a budget is met that the cluster takes no part in")
	}
	attend(c, part)
	other := newCradle(t, w, false)
	attend(other, part)
	meets(c, 0, 0)
	meets(c, 7, 7)
	meets(other, 8, 7) // it has not read that
	meets(other, 0, 7)

	w.clock.Step(25 * time.Hour) // it is deleted, and created again when its windows are not over
	attend(newCradle(t, w, false), part)
	meets(newCradle(t, w, false), 8, 7)
	w.clock.Step(30 * time.Hour)
	if err := c.Attend(t.Context(), nil, nil); err != nil {
		t.Fatal(err)
	}
	c = newCradle(t, w, false)
	attend(c, part)
	meets(c, 8, 8)

	fewer := part
	fewer.Members = part.Members[:1]
	attend(c, fewer)
	attend(c, part)
	meets(c, 8, 0)

	for _, id := range []string{"kept by a hub", "of an older version"} {
		if err := c.Attend(t.Context(), map[string]Part{id: {Window: day}}, nil); err != nil {
			t.Fatal(err)
		}
		if err := c.Attend(t.Context(), map[string]Part{id: part}, nil); err != nil {
			t.Fatal(err)
		}
		if b, err := c.Meet(t.Context(), id, 9); err != nil || b.Unmet() || b.Memory > 0 {
			t.Errorf("budget %s: %+v, %v", id, b, err)
		}
	}
}
