package journal

import (
	"fmt"
	"testing"

	"github.com/weir-dev/weir/pkg/limiter"
)

const start = limiter.Instant(1_800_000_000_000_000)

// A desk is one leader whose every write is acknowledged when the test says so.
type desk struct {
	*Journal
	t        *testing.T
	params   limiter.Params
	now      limiter.Instant
	counters map[Key]counter
}

func daily(n int64) limiter.Params {
	return limiter.Params{Generation: 1, Rates: []limiter.Rate{{Limit: n, Window: limiter.Day}}}
}

// opened returns the desk of a term that goes on from a record, and has written its first.
func opened(t *testing.T, p limiter.Params, from Record, now limiter.Instant) *desk {
	t.Helper()
	d := &desk{Journal: New(from.Term+1, now, from, now+1, 1<<20), t: t, params: p, now: now, counters: map[Key]counter{}}
	d.Open(limit, Scope{Window: p.Rates[0].Window, Limit: p.Rates[0].Limit})
	d.changed = true
	d.commit()
	return d
}

func (d *desk) take(hash string, n int64) int64 {
	d.t.Helper()
	k := Key{limit, hash}
	c, ok := d.counters[k]
	if !ok {
		c = counter{d.State(k, d.params), d.Account(k)}
	}
	next, res, _ := d.Step(k, c.state, c.account, d.params, d.now, limiter.Command{Min: 1, Want: n})
	c.state = next
	d.counters[k] = c
	return res.Granted
}

func (d *desk) write() Record {
	for _, k := range d.Dirty() {
		d.Enter(k, d.counters[k].account, d.counters[k].state, d.now, limiter.Second)
	}
	return d.Write(d.now)
}

func (d *desk) commit() Record {
	r := d.write()
	d.Acknowledge(r.Seq)
	return r
}

func TestANewKeyIsServedWithoutAWrite(t *testing.T) {
	d := opened(t, daily(3200), Record{}, start)
	for i := range 1000 {
		if got := d.take(fmt.Sprint(i), 50); got != 50 {
			t.Fatalf("key %d is granted %d of 50", i, got)
		}
	}
	if due, _ := d.Due(); due {
		t.Error("a write is due")
	}
	d.take("0", 1)
	if due, urgent := d.Due(); !due || urgent {
		t.Errorf("half the allowance was granted: due is %t, urgent %t", due, urgent)
	}
	if got := d.take("0", 60); got != 49 {
		t.Errorf("the rest of the allowance is %d, want 49", got)
	}
	if got := d.take("0", 60); got != 0 {
		t.Errorf("granted %d beyond the allowance", got)
	}
	if _, urgent := d.Due(); !urgent {
		t.Error("nobody waits")
	}
	d.commit()
	if got := d.take("0", 60); got != 60 {
		t.Errorf("granted %d of what waited for the write", got)
	}
}

func TestACounterThatComesBackIsBoundByTheRecord(t *testing.T) {
	k := Key{limit, "a"}
	for name, c := range map[string]struct {
		do   func(*desk)
		want int64
	}{
		"by its entry, once that is known": {func(d *desk) {
			d.commit()
			d.Forget(k)
		}, 150},
		"by nothing while its first entry is on its way": {func(d *desk) {
			d.write()
			d.Forget(k)
		}, 0},
		"by both, while its entry leaves": {func(d *desk) {
			d.commit()
			d.Forget(k)
			d.write()
		}, 100},
		"by the allowance when its entry is gone": {func(d *desk) {
			d.commit()
			d.Forget(k)
			d.commit()
		}, 100},
	} {
		t.Run(name, func(t *testing.T) {
			d := opened(t, daily(3200), Record{}, start)
			for d.take("a", 50) > 0 {
			}
			d.now = d.now.Add(3 * limiter.Day)
			c.do(d)
			delete(d.counters, k)
			if got := d.take("a", 1000); got != c.want {
				t.Errorf("granted %d, want %d", got, c.want)
			}
		})
	}
}

func TestACounterThatComesBackKeepsItsEntry(t *testing.T) {
	d := opened(t, daily(3200), Record{}, start)
	d.take("a", 60)
	d.commit()
	d.now = d.now.Add(3 * limiter.Day)
	d.Forget(Key{limit, "a"})
	delete(d.counters, Key{limit, "a"})
	d.take("a", 1)
	d.changed = true
	if r := d.commit(); len(r.Keys) != 1 {
		t.Errorf("%d entries are left, want 1", len(r.Keys))
	}
}

func TestAnEntryOutlivesItsWindowWhileItsCounterDoes(t *testing.T) {
	d := opened(t, daily(3200), Record{}, start)
	d.take("a", 60)
	d.commit()
	d.now, d.changed = d.now.Add(9*limiter.Day), true
	if r := d.commit(); len(r.Keys) != 1 {
		t.Errorf("%d entries are left, want 1", len(r.Keys))
	}
}

func TestTheAllowanceRisesWithTheRecord(t *testing.T) {
	first := opened(t, daily(3200), Record{}, start)
	first.changed = true
	d := opened(t, daily(3200), first.commit(), start+1)
	if got := d.take("a", 500); got != 50 {
		t.Fatalf("after a crash the allowance is %d, want 50", got)
	}
	d.now, d.changed = d.now.Add(3*limiter.Day), true
	d.write()
	if got := d.take("b", 500); got != 50 {
		t.Errorf("granted %d while the larger one is not known to be written, want 50", got)
	}
	d.Acknowledge(d.seq)
	if got := d.take("c", 500); got != 100 {
		t.Errorf("the allowance is %d when nothing of the crash counts, want 100", got)
	}
}

func TestChargesBecomeOneAtTheLaterInstant(t *testing.T) {
	var list []Charge
	for i := range limiter.Instant(maxCharges + 9) {
		list = charged(list, Charge{From: i, At: i + 1, Units: 10})
	}
	if len(list) != maxCharges || units(list) != 10*(maxCharges+9) {
		t.Errorf("%d charges of %d units", len(list), units(list))
	}
	if list[0] != (Charge{From: 0, At: 10, Units: 100}) {
		t.Errorf("the oldest is %+v", list[0])
	}
}

func TestGrantsOfTheOwnTermAreNotCharged(t *testing.T) {
	d := opened(t, daily(3200), Record{}, start)
	d.take("a", 60)
	record := d.commit()
	next := New(2, start+1, record, start, 1<<20)
	for _, hash := range []string{"a", "b"} {
		want := int64(0)
		if hash == "a" {
			want = 60
		}
		if s := next.State(Key{limit, hash}, d.params); s.N > 0 && s.Meters[0].Used != want {
			t.Errorf("%s has %d in use, want %d", hash, s.Meters[0].Used, want)
		}
	}
	if s := New(3, start+2, record, start+1, 1<<20).State(Key{limit, "b"}, d.params); s.Meters[0].Used != 100 {
		t.Errorf("after a crash %d are in use, want 100", s.Meters[0].Used)
	}
}

func TestAnOlderGenerationIsRefused(t *testing.T) {
	d := opened(t, daily(3200), Record{}, start)
	d.params.Generation = 5
	d.take("a", 60)
	next := opened(t, daily(3200), d.commit(), start+1)
	next.params.Generation = 4
	k := Key{limit, "a"}
	if _, res, _ := next.Step(k, next.State(k, next.params), next.Account(k), next.params, next.now, limiter.Command{Min: 1, Want: 1}); res.Reason != limiter.StaleGeneration {
		t.Errorf("the reason is %v, want StaleGeneration", res.Reason)
	}
}

func TestALimitThatWasClosedBeginsAnew(t *testing.T) {
	d := opened(t, daily(3200), Record{}, start)
	d.take("a", 60)
	d.commit()
	d.Close(limit)
	if got := d.take("a", 1); got != 0 {
		t.Errorf("granted %d of a limit that is closed", got)
	}
	if r := d.commit(); len(r.Keys) != 0 || !r.Limits[limit].Closed {
		t.Errorf("the record has %d entries, closed is %t", len(r.Keys), r.Limits[limit].Closed)
	}
	d.Open(limit, Scope{Window: limiter.Day, Limit: 3200, Past: 5, Since: 9})
	if got := d.take("a", 1); got != 0 {
		t.Errorf("granted %d before it is written", got)
	}
	if r := d.commit(); r.Limits[limit].Since != 9 || d.Past(Key{limit, "a"}) != 5 {
		t.Errorf("a successor knows since %d, this term since %d", r.Limits[limit].Since, d.Past(Key{limit, "a"}))
	}
	if got := d.take("a", 1000); got != 100 {
		t.Errorf("granted %d, want the allowance", got)
	}
}

func TestAReset(t *testing.T) {
	hash := "a"
	for name, c := range map[string]struct {
		hash *string
		b    int64
	}{"of a key": {&hash, 100}, "of the limit": {nil, 0}} {
		t.Run(name, func(t *testing.T) {
			d := opened(t, daily(3200), Record{}, start)
			d.take("a", 60)
			d = opened(t, daily(3200), d.commit(), start+1)
			d.Reset(limit, c.hash)
			record := d.commit()
			for hash, want := range map[string]int64{"a": 0, "b": c.b} {
				if got := record.Keys[Key{limit, hash}].State; got.N != 0 {
					t.Errorf("the entry of %s is %+v", hash, got)
				}
				var used int64
				if s := d.State(Key{limit, hash}, d.params); s.N > 0 {
					used = s.Meters[0].Used
				}
				if used != want {
					t.Errorf("%s has %d in use, want %d", hash, used, want)
				}
			}
		})
	}
}

// TestUnitsThatATermKnowsAreNotForfeited has a term end in order, or by a crash, and looks what the
// next one sets aside under the same load.
func TestUnitsThatATermKnowsAreNotForfeited(t *testing.T) {
	ask := func(d *desk) (aside int64) {
		for range 4 {
			d.take("a", 100)
			d.now = d.now.Add(limiter.Second)
			d.commit()
			aside = d.entries[Key{limit, "a"}].Aside
		}
		return aside
	}
	p := daily(6000)
	d := opened(t, p, Record{}, start)
	aside := ask(d)
	record := d.commit()
	for name, c := range map[string]struct {
		known limiter.Instant // since when the next term has the counters
		all   bool            // it sets aside as much
	}{
		"in order": {start, true},
		"a crash":  {d.now + 1, false},
	} {
		next := &desk{Journal: New(record.Term+1, d.now, record, c.known, 1<<20), t: t, params: p, now: d.now, counters: map[Key]counter{}}
		if c.all {
			next.counters[Key{limit, "a"}] = counter{d.counters[Key{limit, "a"}].state, next.Account(Key{limit, "a"})}
		}
		next.Open(limit, Scope{Window: limiter.Day, Limit: 6000})
		next.commit()
		if got := ask(next); (got >= aside) != c.all {
			t.Errorf("%s: the next term sets %d aside, the one before %d", name, got, aside)
		}
	}
}
