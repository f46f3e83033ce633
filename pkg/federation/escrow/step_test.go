package escrow_test

import (
	"testing"

	"github.com/weir-dev/weir/pkg/federation/escrow"
	"github.com/weir-dev/weir/pkg/federation/ledger"
	"github.com/weir-dev/weir/pkg/limiter"
)

const (
	begin  = limiter.Instant(1_790_000_000_000_000)
	second = limiter.Second
)

// A desk is an escrow and its clock.
type desk struct {
	*testing.T
	escrow.State
	now limiter.Instant
}

func newDesk(t *testing.T) *desk { return &desk{T: t, now: begin} }

func (d *desk) do(c escrow.Command) escrow.Result {
	d.Helper()
	if err := c.Validate(); err != nil {
		d.Fatalf("%+v: %v", c, err)
	}
	var r escrow.Result
	d.State, r = d.Step(d.now, c)
	return r
}

func (d *desk) ask() escrow.Result {
	d.Helper()
	return d.do(escrow.Command{Op: escrow.Ask, Holder: "h"})
}

// answered is asked for a total of units, which the coordinator grants at once.
func (d *desk) answered(e ledger.Epoch, granted int64) escrow.Result {
	d.Helper()
	return d.fill(d.ask(), e, granted)
}

// fill brings an answer to a command. The window lasts for a second from then on.
func (d *desk) fill(asked escrow.Result, e ledger.Epoch, granted int64) escrow.Result {
	d.Helper()
	return d.do(escrow.Command{
		Op: escrow.Fill, Holder: asked.Holder, At: asked.Now, ExpiresIn: second,
		Grant: ledger.Grant{Reason: ledger.Granted, Seq: asked.Seq, Epoch: e, Granted: granted, Slice: 7},
	})
}

func (d *desk) release(keep int64) escrow.Result {
	d.Helper()
	return d.do(escrow.Command{Op: escrow.Release, Holder: "h", Keep: keep})
}

func (d *desk) take(low, want int64) escrow.Result {
	d.Helper()
	return d.do(escrow.Command{Op: escrow.Take, Min: low, Want: want})
}

// takes expects that many units when asked for 1 to 1000.
func (d *desk) takes(units int64) {
	d.Helper()
	if r := d.take(1, 1000); r.Granted != units {
		d.Errorf("took %d, want %d: %+v", r.Granted, units, d.State)
	}
}

func (d *desk) putBack(index, units int64) int64 {
	d.Helper()
	return d.do(escrow.Command{Op: escrow.Return, Want: units, Epoch: ledger.Epoch{Index: index}}).Granted
}

// openAged opens a window that began an instant after the memory did, or earlier.
func (d *desk) openAged(index, slice int64, age limiter.Micros) escrow.Result {
	d.Helper()
	return d.do(escrow.Command{
		Op: escrow.Open, Epoch: ledger.Epoch{Index: index}, Slice: slice, At: d.now, ExpiresIn: second, Age: age, Since: begin - 10,
	})
}

func epoch(index, term int64) ledger.Epoch { return ledger.Epoch{Index: index, Term: term} }

func TestUnitsAreHandedOnUpToWhatWasGranted(t *testing.T) {
	d := newDesk(t)
	d.takes(0)
	r := d.answered(epoch(5, 1), 10)
	want := escrow.Result{Epoch: epoch(5, 1), ExpiresIn: second, Remaining: 10, Now: begin}
	if r != want {
		t.Errorf("got %+v, want %+v", r, want)
	}
	if r := d.take(2, 4); r.Granted != 4 || r.Remaining != 6 || r.Taken != 4 || r.Asked != 4 {
		t.Errorf("got %+v", r)
	}
	if r := d.take(7, 8); r.Granted != 0 || r.Remaining != 6 || r.Asked != 12 {
		t.Errorf("7 of 6: got %+v", r)
	}
	d.takes(6)
	d.takes(0)
}

func TestUnitsDieWithTheWindow(t *testing.T) {
	d := newDesk(t)
	d.answered(epoch(5, 1), 10)
	d.take(1, 4)
	d.now = begin.Add(second - 1)
	if r := d.take(1, 1); r.Granted != 1 || r.ExpiresIn != 1 {
		t.Errorf("at the end: got %+v", r)
	}
	d.now = begin.Add(second)
	if r := d.take(1, 1); r != (escrow.Result{Now: d.now}) {
		t.Errorf("after the end: got %+v", r)
	}
	if back := d.putBack(5, 1); back != 0 {
		t.Errorf("after the end %d were put back", back)
	}
	d.answered(epoch(6, 1), 3)
	d.takes(3)
}

// TestALateAnswerDoesNotLengthenTheWindow fills after half of the window.
func TestALateAnswerDoesNotLengthenTheWindow(t *testing.T) {
	d := newDesk(t)
	asked := d.ask()
	d.now = begin.Add(second / 2)
	if r := d.fill(asked, epoch(5, 1), 10); r.ExpiresIn != second/2 {
		t.Errorf("got %+v", r)
	}
	d.now = begin.Add(second / 4 * 3)
	if r := d.fill(asked, epoch(5, 1), 10); r.ExpiresIn != second/4 {
		t.Errorf("again: got %+v", r)
	}
}

// TestTakenUnitsStayTakenWhenTheEndIsKnownBetter revives a window that a slow
// answer had end early.
func TestTakenUnitsStayTakenWhenTheEndIsKnownBetter(t *testing.T) {
	d := newDesk(t)
	d.answered(epoch(5, 1), 10)
	d.takes(10)
	d.now = begin.Add(second)
	asked := d.ask()
	if asked.Told != 10 || asked.From != epoch(5, 1) {
		t.Errorf("sent %+v", asked)
	}
	if r := d.fill(asked, epoch(5, 1), 12); r.Remaining != 2 || r.Taken != 10 {
		t.Errorf("got %+v", r)
	}
}

func TestADuplicateChangesNothing(t *testing.T) {
	d := newDesk(t)
	asked := d.ask()
	d.fill(asked, epoch(5, 1), 10)
	d.take(1, 4)
	before := d.State
	d.fill(asked, epoch(5, 1), 10)
	if d.State != before {
		t.Errorf("got %+v after %+v", d.State, before)
	}
}

func TestTheLargerTotalIsTheLaterOne(t *testing.T) {
	d := newDesk(t)
	first, last := d.ask(), d.ask()
	d.fill(last, epoch(5, 1), 10)
	d.fill(first, epoch(5, 1), 6)
	d.takes(10)
}

func TestAnOlderEpochNeverReplacesANewerOne(t *testing.T) {
	for name, e := range map[string]ledger.Epoch{
		"a window before":                 epoch(4, 2),
		"a window before of a later term": epoch(4, 3),
		"a term before":                   epoch(5, 1),
	} {
		t.Run(name, func(t *testing.T) {
			d := newDesk(t)
			late := d.ask()
			d.answered(epoch(5, 2), 10)
			before := d.State
			d.fill(late, e, 90)
			if d.State != before {
				t.Errorf("got %+v after %+v", d.State, before)
			}
		})
	}
}

func TestGrantsOfAnEarlierTermAreKept(t *testing.T) {
	d := newDesk(t)
	d.answered(epoch(5, 1), 10)
	d.take(1, 4)
	d.answered(epoch(5, 2), 3)
	if d.Before != 10 || d.Granted != 3 || d.Taken != 4 {
		t.Errorf("got %+v", d.State)
	}
	if asked := d.ask(); asked.Told != 3 || asked.From != epoch(5, 2) {
		t.Errorf("sent %+v", asked)
	}
	d.answered(epoch(5, 4), 1)
	d.takes(10)
	d.answered(epoch(6, 4), 2)
	d.takes(2)
}

func TestReleaseTakesOffBeforeItReports(t *testing.T) {
	for name, c := range map[string]struct{ taken, keep, told int64 }{
		"nothing taken":              {0, 0, 0},
		"some taken":                 {4, 0, 4},
		"some kept":                  {4, 2, 6},
		"all kept":                   {4, 6, 10},
		"more kept than there is":    {4, 90, 10},
		"all taken, and more wanted": {10, 3, 10},
	} {
		t.Run(name, func(t *testing.T) {
			d := newDesk(t)
			d.answered(epoch(5, 1), 10)
			if c.taken > 0 {
				d.take(c.taken, c.taken)
			}
			r := d.release(c.keep)
			if r.Told != c.told || r.Seq != 2 || r.From != epoch(5, 1) || r.Holder != "h" || r.Remaining != c.told-c.taken {
				t.Errorf("got %+v, want %d", r, c.told)
			}
			d.takes(c.told - c.taken)
		})
	}
}

// TestReleaseReturnsTheGrantsOfTheTerm keeps what nobody would take back.
func TestReleaseReturnsTheGrantsOfTheTerm(t *testing.T) {
	d := newDesk(t)
	d.answered(epoch(5, 1), 10)
	d.answered(epoch(5, 2), 3)
	if r := d.release(0); r.Told != 0 || r.Remaining != 10 {
		t.Errorf("got %+v", r)
	}
}

func TestAnswersToCommandsFromBeforeAReleaseAreIgnored(t *testing.T) {
	d := newDesk(t)
	d.answered(epoch(5, 1), 10)
	late := d.ask()
	released := d.release(2)
	d.fill(late, epoch(5, 1), 30)
	if d.Granted != 2 {
		t.Errorf("got %+v", d.State)
	}
	d.fill(late, epoch(6, 1), 30)
	if d.Epoch.Index != 5 {
		t.Errorf("a later window: got %+v", d.State)
	}
	d.fill(released, epoch(5, 1), 2)
	d.answered(epoch(5, 1), 8)
	d.takes(8)
}

func TestAReturnIsOfTakenUnitsOfTheOpenWindow(t *testing.T) {
	d := newDesk(t)
	d.answered(epoch(5, 1), 10)
	d.take(4, 4)
	for index, want := range map[int64]int64{4: 0, 6: 0} {
		if back := d.putBack(index, 2); back != want || d.Taken != 4 {
			t.Errorf("of window %d: %d were put back", index, back)
		}
	}
	d.answered(epoch(5, 2), 0) // the one that took them heard of the earlier term
	if back := d.putBack(5, 9); back != 4 || d.Taken != 0 {
		t.Errorf("%d were put back, of 4", back)
	}
	d.takes(10)
}

func TestASliceOpensAWindowOnce(t *testing.T) {
	d := newDesk(t)
	d.answered(epoch(5, 1), 10)
	d.now = begin.Add(second)
	if r := d.openAged(6, 4, 0); r.Remaining != 4 || r.Epoch != epoch(6, 1) || r.ExpiresIn != second {
		t.Errorf("got %+v", r)
	}
	d.takes(4)
	before := d.State
	d.openAged(6, 6, 0)
	d.openAged(5, 6, 0)
	if d.State != before {
		t.Errorf("again: got %+v after %+v", d.State, before)
	}
	d.answered(epoch(6, 1), 5)
	d.takes(5)
	if asked := d.ask(); asked.Told != 5 {
		t.Errorf("sent %+v", asked)
	}
	d.answered(epoch(6, 2), 2)
	d.takes(2)
}

func TestASliceOpensNoWindow(t *testing.T) {
	for name, change := range map[string]func(*desk, *escrow.Command){
		"that began before the memory": func(d *desk, c *escrow.Command) { c.Age = d.now.Sub(begin) + 11 },
		"that began with the memory":   func(d *desk, c *escrow.Command) { c.Age = d.now.Sub(begin) + 10 },
		"that is over":                 func(_ *desk, c *escrow.Command) { c.ExpiresIn = 0 },
		"that an answer opened":        func(_ *desk, c *escrow.Command) { c.Epoch.Index = 5 },
		"before one that was open":     func(_ *desk, c *escrow.Command) { c.Epoch.Index = 4 },
		"by a clock that was set back": func(d *desk, c *escrow.Command) { c.At = d.now + 1 },
		"that ended on the way":        func(_ *desk, c *escrow.Command) { c.At = begin },
	} {
		t.Run(name, func(t *testing.T) {
			d := newDesk(t)
			d.answered(epoch(5, 1), 10)
			d.now = begin.Add(second)
			c := escrow.Command{
				Op: escrow.Open, Epoch: epoch(6, 0), Slice: 4, At: d.now, ExpiresIn: second, Age: d.now.Sub(begin) + 9, Since: begin - 10,
			}
			change(d, &c)
			if r := d.do(c); r.Remaining != 0 || d.Slice != 0 {
				t.Errorf("got %+v", r)
			}
		})
	}
}

func TestASliceIsWhatTheEscrowHeard(t *testing.T) {
	d := newDesk(t)
	if r := d.openAged(4, 7, 0); r.Remaining != 0 {
		t.Errorf("before it was granted: %+v", r)
	}
	grants := func(asked escrow.Result, slice int64) {
		d.do(escrow.Command{
			Op: escrow.Fill, Holder: "h", At: asked.Now, ExpiresIn: second,
			Grant: ledger.Grant{Reason: ledger.Granted, Seq: asked.Seq, Epoch: epoch(5, 1), Slice: slice},
		})
	}
	first := d.ask()
	grants(first, 9)
	second := d.ask()
	grants(second, 3)
	third := d.ask()
	if third.Slice != 3 {
		t.Errorf("acknowledged %+v", third)
	}
	grants(first, 9)
	grants(second, 9) // answered before the coordinator knew
	if d.Next != 3 {
		t.Errorf("after it acknowledged 3: %+v", d.State)
	}
	grants(second, 2)
	grants(third, 5)
	if r := d.openAged(6, 9, 0); r.Remaining != 5 {
		t.Errorf("got %+v", r)
	}
}

func TestAnAnswerIsOfTheEscrowThatAsked(t *testing.T) {
	for name, change := range map[string]func(*escrow.Command){
		"to one that was lost":                 func(c *escrow.Command) { c.Holder = "lost" },
		"to a command that was never prepared": func(c *escrow.Command) { c.Grant.Seq++ },
		"by a coordinator that names no epoch": func(c *escrow.Command) { c.Grant.Epoch = ledger.Epoch{} },
	} {
		t.Run(name, func(t *testing.T) {
			d := newDesk(t)
			asked := d.ask()
			before := d.State
			c := escrow.Command{
				Op: escrow.Fill, Holder: "h", At: asked.Now, ExpiresIn: second,
				Grant: ledger.Grant{Reason: ledger.Granted, Seq: asked.Seq, Epoch: epoch(5, 1), Granted: 10, Slice: 4},
			}
			change(&c)
			d.do(c)
			if d.State != before {
				t.Errorf("got %+v after %+v", d.State, before)
			}
		})
	}
}

func TestTheFirstNameStays(t *testing.T) {
	d := newDesk(t)
	d.ask()
	if r := d.do(escrow.Command{Op: escrow.Ask, Holder: "other"}); r.Holder != "h" || r.Seq != 2 {
		t.Errorf("got %+v", r)
	}
}

func TestAClockThatIsSetBackClosesTheWindow(t *testing.T) {
	d := newDesk(t)
	asked := d.answered(epoch(5, 1), 10)
	late := d.ask()
	d.now -= 1000
	d.takes(0)
	d.fill(late, epoch(5, 1), 12)
	d.takes(0)
	if asked = d.answered(epoch(5, 1), 12); asked.ExpiresIn != second {
		t.Errorf("got %+v", asked)
	}
	d.takes(12)
}

func TestPeekChangesNothing(t *testing.T) {
	d := newDesk(t)
	d.answered(epoch(5, 1), 10)
	before := d.State
	if r := d.do(escrow.Command{Op: escrow.Peek}); r.Remaining != 10 || d.State != before {
		t.Errorf("got %+v, %+v after %+v", r, d.State, before)
	}
}
