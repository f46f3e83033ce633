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

	answered, spared verdicts
}

type verdicts [concurrency.Closed + 1]atomic.Int64

// Answered returns how many requests were answered with v since the guard was made.
func (t *Tally) Answered(v concurrency.Verdict) int64 { return t.answered[v].Load() }

// Spared returns how many requests passed that would have been answered with v if the pool were
// not in shadow.
func (t *Tally) Spared(v concurrency.Verdict) int64 { return t.spared[v].Load() }

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

// of returns the tally of a partition by its index, or slots.Rest.
func (ts tallies) of(partition int) *Tally {
	if partition < 0 {
		return ts[len(ts)-1]
	}
	return ts[partition]
}
