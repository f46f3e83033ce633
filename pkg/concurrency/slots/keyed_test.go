package slots_test

import (
	"slices"
	"testing"

	"github.com/weir-dev/weir/pkg/concurrency/slots"
	"github.com/weir-dev/weir/pkg/limiter"
)

// keyed is keys with their table, as an owner holds both, beside a dumb list of what waits.
type keyed struct {
	t      *testing.T
	table  *slots.Table
	keys   *slots.Keys
	of     map[slots.Ticket]string // keys of tickets that wait or are in flight
	line   []slots.Ticket          // that wait, in order of arrival
	held   []slots.Ticket
	count  map[string]int64 // in flight
	config slots.Queue
}

func newKeyed(t *testing.T, q slots.Queue) *keyed {
	return &keyed{
		t: t, table: slots.New(slots.Config{Queue: q}), keys: slots.NewKeys(), config: q,
		of: map[slots.Ticket]string{}, count: map[string]int64{},
	}
}

// waiting returns how many requests of a key wait.
func (k *keyed) waiting(key string) int {
	n := 0
	for _, t := range k.line {
		if k.of[t] == key {
			n++
		}
	}
	return n
}

// ask asks for a slot of a key, and compares the answer with what the list says.
func (k *keyed) ask(now limiter.Instant, key string, ceiling int64) {
	want, behind := slots.Overflow, k.waiting(key)
	switch {
	case k.count[key] < ceiling && behind == 0:
		want = slots.Admitted
	case k.config.MaxLength == 0:
		want = slots.Full
	case behind < k.config.MaxLength-len(k.line): // no more of it wait than places are left
		want = slots.Queued
	}
	ticket, got := slots.Ticket{}, slots.Admitted
	if k.keys.Admit(key, ceiling) {
		ticket = k.table.Hold()
	} else if ticket, got = k.table.Wait(now, k.keys.Waiting(key)); got == slots.Queued {
		k.keys.Wait(key, ticket)
	}
	if got != want {
		k.t.Fatalf("%q is %d, want %d, with %d in flight below %d and %d of %d waiting", key, got, want, k.count[key], ceiling, behind, len(k.line))
	}
	switch got {
	case slots.Admitted:
		k.of[ticket], k.held = key, append(k.held, ticket)
		k.count[key]++
	case slots.Queued:
		k.of[ticket], k.line = key, append(k.line, ticket)
	default:
	}
}

// pass admits all that may be. The oldest of each key is the next of it, and afterwards none waits
// whose key has a free slot.
func (k *keyed) pass(ceiling int64) {
	for {
		ticket, ok := k.keys.Next(ceiling)
		if !ok {
			break
		}
		k.table.Promote(ticket)
		key := k.of[ticket]
		oldest := slices.IndexFunc(k.line, func(t slots.Ticket) bool { return k.of[t] == key })
		if oldest < 0 || k.line[oldest] != ticket || k.count[key] >= ceiling {
			k.t.Fatalf("one of %q is admitted that is not its oldest, or with %d in flight below %d", key, k.count[key], ceiling)
		}
		k.line = slices.Delete(k.line, oldest, oldest+1)
		k.held = append(k.held, ticket)
		k.count[key]++
	}
	for _, t := range k.line {
		if k.count[k.of[t]] < ceiling {
			k.t.Fatalf("one of %q waits with %d in flight below %d", k.of[t], k.count[k.of[t]], ceiling)
		}
	}
}

// end ends a request in flight.
func (k *keyed) end(i int) {
	ticket := k.held[i]
	k.held = slices.Delete(k.held, i, i+1)
	if _, ok := k.table.Release(ticket); !ok {
		k.t.Fatalf("a slot of %q cannot be released", k.of[ticket])
	}
	k.keys.Release(k.of[ticket])
	k.count[k.of[ticket]]--
	delete(k.of, ticket)
}

// expire takes out what waited too long, and has to find the oldest of all.
func (k *keyed) expire(now limiter.Instant) {
	for {
		ticket, ok := k.table.Expire(now)
		if !ok {
			return
		}
		if ticket != k.line[0] {
			k.t.Fatal("one expires that is not the oldest")
		}
		k.drop(0)
	}
}

// drop forgets one that waited.
func (k *keyed) drop(i int) {
	k.keys.Leave(k.of[k.line[i]], k.line[i])
	delete(k.of, k.line[i])
	k.line = slices.Delete(k.line, i, i+1)
}
