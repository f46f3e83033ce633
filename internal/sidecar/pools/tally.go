package pools

import (
	"sync/atomic"

	"github.com/weir-dev/weir/pkg/concurrency"
	"github.com/weir-dev/weir/pkg/policy"
)

// Refusals lists the verdicts but Admitted.
func Refusals() []concurrency.Verdict {
	return []concurrency.Verdict{
		concurrency.Full, concurrency.Overflow, concurrency.Expired, concurrency.Canceled,
		concurrency.Unassigned, concurrency.Fenced, concurrency.Closed,
	}
}

// A Tally counts how the requests of one partition were answered.
type Tally struct {
	Partition string // empty for requests of none

	answered, spared             verdicts
	keyMissing, keyMissingSpared atomic.Int64
}

type verdicts [concurrency.Closed + 1]atomic.Int64

// Answered returns how many requests were answered with v since the guard was made.
func (t *Tally) Answered(v concurrency.Verdict) int64 { return t.answered[v].Load() }

// Spared returns how many requests passed that would have been answered with v if the pool were
// not in shadow.
func (t *Tally) Spared(v concurrency.Verdict) int64 { return t.spared[v].Load() }

// KeyMissing returns how many requests were refused because they lack a part of the key. They asked
// for no slot, so no verdict counts them.
func (t *Tally) KeyMissing() int64 { return t.keyMissing.Load() }

// KeyMissingSpared returns how many of them passed because the pool was in shadow.
func (t *Tally) KeyMissingSpared() int64 { return t.keyMissingSpared.Load() }

func (t *Tally) lacks(shadow bool) {
	if shadow {
		t.keyMissingSpared.Add(1)
	} else {
		t.keyMissing.Add(1)
	}
}

func (t *Tally) count(v concurrency.Verdict, shadow bool) {
	if shadow && v != concurrency.Admitted {
		t.spared[v].Add(1)
	} else {
		t.answered[v].Add(1)
	}
}

// tallies are those of all partitions, in their order, and of none at the end.
type tallies []*Tally

func newTallies(p *policy.Pool) tallies { return tallies(nil).under(p) }

// under returns the tallies under another version of the pool: a partition keeps its
// own by its name.
func (ts tallies) under(p *policy.Pool) tallies {
	known := make(map[string]*Tally, len(ts))
	for _, t := range ts {
		known[t.Partition] = t
	}
	next := make(tallies, 0, len(p.Partitions)+1)
	add := func(name string) {
		t := known[name]
		if t == nil {
			t = &Tally{Partition: name}
		}
		next = append(next, t)
	}
	for i := range p.Partitions {
		add(p.Partitions[i].Name)
	}
	add("")
	return next
}

// keyMissing returns how many requests lacked a part of the key, refused or let through in shadow.
func (ts tallies) keyMissing() int64 {
	var n int64
	for _, t := range ts {
		n += t.KeyMissing() + t.KeyMissingSpared()
	}
	return n
}

// of returns the tally of a partition by its index, or slots.Rest.
func (ts tallies) of(partition int) *Tally {
	if partition < 0 {
		return ts[len(ts)-1]
	}
	return ts[partition]
}
