package slots_test

import (
	"slices"

	"github.com/weir-dev/weir/pkg/concurrency/slots"
	"github.com/weir-dev/weir/pkg/limiter"
)

// An oracle is the same table without anything clever: one list of what is in flight,
// one of what waits, and every sum computed from them.
type oracle struct {
	config   slots.Config
	inFlight []request
	waiting  []request // in order of arrival
}

type request struct {
	id        int
	partition string
	since     limiter.Instant
	use       slots.Use
}

const rest = "the rest"

func (o *oracle) name(partition int) string {
	if partition < 0 || partition >= len(o.config.Partitions) {
		return rest
	}
	return o.config.Partitions[partition].Name
}

func (o *oracle) guarantee(name string, ceiling int64) int64 {
	for _, p := range o.config.Partitions {
		if p.Name == name {
			return ceiling * int64(p.GuaranteedPercent) / 100
		}
	}
	return 0
}

func (o *oracle) used(name string) (n int64) {
	for _, r := range o.inFlight {
		if r.partition == name {
			n++
		}
	}
	return n
}

// admits is the rule as it is promised: nothing at the ceiling; below it a partition
// has its guarantee, and what the others' guarantees leave.
func (o *oracle) admits(name string, ceiling int64) bool {
	total := int64(len(o.inFlight))
	if total >= ceiling {
		return false
	}
	if o.used(name) < o.guarantee(name, ceiling) {
		return true
	}
	left := ceiling
	for _, p := range o.config.Partitions {
		if p.Name != name {
			left -= max(0, o.guarantee(p.Name, ceiling)-o.used(p.Name))
		}
	}
	return total < left
}

func (o *oracle) acquire(id int, now limiter.Instant, partition int, ceiling int64) slots.Outcome {
	name := o.name(partition)
	overtakes := slices.ContainsFunc(o.waiting, func(r request) bool { return o.admits(r.partition, ceiling) })
	r := request{id: id, partition: name, since: now}
	switch {
	case o.admits(name, ceiling) && !overtakes:
		o.admit(r, now, ceiling)
		return slots.Admitted
	case o.config.Queue.MaxLength == 0:
		return slots.Full
	case len(o.waiting) >= o.config.Queue.MaxLength:
		return slots.Overflow
	}
	o.waiting = append(o.waiting, r)
	return slots.Queued
}

func (o *oracle) admit(r request, now limiter.Instant, ceiling int64) {
	r.since, r.use = now, slots.Use{InFlight: int64(len(o.inFlight)) + 1, Ceiling: max(0, ceiling)}
	o.inFlight = append(o.inFlight, r)
}

// release reports what the slot had.
func (o *oracle) release(id int) (request, bool) {
	for i, r := range o.inFlight {
		if r.id == id {
			o.inFlight = slices.Delete(o.inFlight, i, i+1)
			return r, true
		}
	}
	o.waiting = slices.DeleteFunc(o.waiting, func(r request) bool { return r.id == id })
	return request{}, false
}

func (o *oracle) next(now limiter.Instant, ceiling int64) (int, bool) {
	for i, r := range o.waiting {
		if o.admits(r.partition, ceiling) {
			o.waiting = slices.Delete(o.waiting, i, i+1)
			o.admit(r, now, ceiling)
			return r.id, true
		}
	}
	return 0, false
}

func (o *oracle) deadline() (limiter.Instant, bool) {
	if len(o.waiting) == 0 {
		return 0, false
	}
	return o.waiting[0].since.Add(o.config.Queue.MaxWait), true
}

func (o *oracle) expire(now limiter.Instant) (int, bool) {
	if at, ok := o.deadline(); !ok || at > now {
		return 0, false
	}
	return o.flush()
}

func (o *oracle) flush() (int, bool) {
	if len(o.waiting) == 0 {
		return 0, false
	}
	id := o.waiting[0].id
	o.waiting = o.waiting[1:]
	return id, true
}

func (o *oracle) reconfigure(c slots.Config) {
	o.config = c
	for _, list := range [][]request{o.inFlight, o.waiting} {
		for i := range list {
			if !slices.ContainsFunc(c.Partitions, func(p slots.Partition) bool { return p.Name == list[i].partition }) {
				list[i].partition = rest
			}
		}
	}
}
