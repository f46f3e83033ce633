package ledger_test

import (
	"fmt"
	"reflect"
	"slices"
	"testing"

	"github.com/weir-dev/weir/pkg/federation/ledger"
)

// TestTheLimitHolds runs histories in which everything goes wrong that may.
func TestTheLimitHolds(t *testing.T) {
	for _, kind := range []string{"all", "nothing", "record"} {
		did := map[string]int{}
		for seed := range uint64(300) {
			w := newTimeline(seed, kind)
			for i := range 2000 {
				if err := w.step(); err != nil {
					t.Fatalf("memory of %s, seed %d, step %d: %v", kind, seed, i, err)
				}
			}
			for what, n := range w.did {
				did[what] += n
			}
		}
		for _, what := range []string{
			"reason 1", "reason 2", "reason 3", "reason 4", "reason 6", "reason 11", "units were used", "slices were used",
			"a window was used up", "the clock stepped back", "a command was lost", "a command was repeated",
			"a memory was lost", "the limit fell", "a slice shrank", "a slice grew",
		} {
			if did[what] < 50 && (kind != "nothing" || what != "a slice shrank") { // see edit
				t.Errorf("memory of %s: %s only %d times", kind, what, did[what])
			}
		}
		t.Log(kind, did)
	}
}

// hear brings any answer to its process. Its rules are those of the package's doc.
func (t *timeline) hear() {
	if len(t.answers) == 0 {
		return
	}
	i := t.rng.IntN(len(t.answers))
	m := t.answers[i]
	if t.rng.IntN(8) > 0 {
		t.answers = slices.Delete(t.answers, i, i+1)
	}
	p, g := m.from, m.grant
	if g.Epoch.Term > 0 {
		if g.Seq == p.seq && g.Slice > p.slice && g.Epoch.Term >= p.epoch.Term {
			p.slice = g.Slice
			t.did["a slice grew"]++
		}
		if g.Slice < p.slice {
			p.slice = g.Slice
			t.did["a slice shrank"]++
		}
	}
	if g.Seq <= p.floor || g.Epoch.Index < p.epoch.Index || g.Epoch.Index == p.epoch.Index && g.Epoch.Term < p.epoch.Term {
		return
	}
	switch {
	case g.Epoch.Index > p.epoch.Index:
		p.granted, p.prior, p.used = 0, 0, 0
	case g.Epoch.Term > p.epoch.Term:
		p.prior, p.granted = p.prior+p.granted, 0
	}
	p.epoch = g.Epoch
	p.granted = max(p.granted, g.Granted)
}

// use lets a process use what it has of its window, which it need not know to be over:
// what is used counts for the window that it was granted of.
func (t *timeline) use() error {
	p := t.processes[t.rng.IntN(len(t.processes))]
	if left := p.granted + p.prior - p.used; left > 0 {
		n := left
		if t.rng.IntN(3) == 0 {
			n = 1 + t.rng.Int64N(left)
		}
		p.used += n
		t.did["units were used"]++
		return t.count(p.epoch.Index, n)
	}
	return nil
}

// useSlices lets the process of each member that may use its slice do so.
func (t *timeline) useSlices() {
	index := t.window()
	for _, p := range t.processes {
		if p.opened >= index || int64(p.born) >= index*int64(t.params.Window) || p.slice == 0 {
			continue
		}
		p.opened = index
		t.sliced[index] += p.slice
		t.used[index] += p.slice
		t.did["slices were used"]++
	}
}

func (t *timeline) count(index, n int64) error {
	t.used[index] += n
	limit, ok := t.first[index]
	if ok && t.used[index] == limit {
		t.did["a window was used up"]++
	}
	if t.used[index] > limit {
		return fmt.Errorf("%d used of window %d, %d by slices; its limit is %d", t.used[index], index, t.sliced[index], limit)
	}
	return nil
}

// check holds an answer against the command and what was granted before.
func (t *timeline) check(before, after ledger.State, c ledger.Command, g ledger.Grant) error {
	if g.Epoch.Term == 0 {
		if !reflect.DeepEqual(before, after) {
			return fmt.Errorf("%+v changed %+v to %+v", g, before, after)
		}
		return nil
	}
	index := g.Epoch.Index
	if _, ok := t.first[index]; !ok {
		t.first[index], t.least[index] = t.params.Limit, t.params.Limit
	}
	t.least[index] = min(t.least[index], t.params.Limit)
	var had, heard int64
	if before.Epoch() == g.Epoch {
		had = granted(before, c)
	}
	if c.Epoch == g.Epoch {
		heard = c.Granted
	}
	switch {
	case c.Op == ledger.Release && g.Reason == ledger.Granted && g.Granted > heard:
		return fmt.Errorf("%+v left %d: %+v", c, g.Granted, g)
	case c.Op == ledger.Release && g.Granted > had, c.Op == ledger.Lease && g.Granted < had:
		return fmt.Errorf("%+v took a total of %d to %+v", c, had, g)
	case c.Op == ledger.Release && g.Reason == ledger.Forfeited && g.Granted != had:
		return fmt.Errorf("%+v changed a total of %d to %+v", c, had, g)
	case c.Op == ledger.Lease && g.Granted > max(had, heard+c.Want):
		return fmt.Errorf("%+v was granted more than it wants: %+v, had %d", c, g, had)
	case g.Reason == ledger.Granted && c.Op == ledger.Lease && g.Granted < heard+c.Min:
		return fmt.Errorf("%+v was granted less than it can use: %+v, had %d", c, g, had)
	case g.Reason != ledger.Granted && c.Op == ledger.Lease && g.Granted != had:
		return fmt.Errorf("%+v was refused but changed a total of %d: %+v", c, had, g)
	case g.Reason == ledger.Stale && !reflect.DeepEqual(before.Accounts, after.Accounts):
		return fmt.Errorf("%+v is stale and changed %+v to %+v", c, before.Accounts, after.Accounts)
	}
	if g.Granted > had {
		if a := after.Allocation(t.params); a.Granted > min(a.Limit, t.least[index]) && t.kind == "all" {
			return fmt.Errorf("%+v was granted with %d given away of %d", c, a.Granted, t.least[index])
		}
	}
	return nil
}

func granted(s ledger.State, c ledger.Command) int64 {
	for _, a := range s.Accounts {
		if a.Member == c.Member && a.Holder == c.Holder {
			return a.Granted
		}
	}
	return 0
}
