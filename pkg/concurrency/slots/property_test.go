package slots_test

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/weir-dev/weir/pkg/concurrency/slots"
	"github.com/weir-dev/weir/pkg/limiter"
)

// A walk does the same random things to a table and to the oracle.
type walk struct {
	t       *testing.T
	rand    *rand.Rand
	now     limiter.Instant
	ceiling int64
	config  slots.Config

	table   *slots.Table
	oracle  oracle
	other   *slots.Table
	foreign []slots.Ticket       // of the other table
	tickets []slots.Ticket       // by id, also those that ended
	ids     map[slots.Ticket]int // the reverse
	alive   map[int]bool         // ids that wait or are in flight
	before  int64                // peak until the last mark
	since   int64                // and from it on
}

// TestWalksAgreeWithTheOracle holds the table to a dumb one, step for step, and checks
// after each what is promised.
func TestWalksAgreeWithTheOracle(t *testing.T) {
	for seed := range uint64(200) {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			w := newWalk(t, seed)
			for range 500 {
				w.step()
				w.check()
				if t.Failed() {
					t.FailNow()
				}
			}
			w.end()
		})
	}
}

func newWalk(t *testing.T, seed uint64) *walk {
	w := &walk{t: t, rand: rand.New(rand.NewPCG(seed, 0)), ceiling: 5, ids: map[slots.Ticket]int{}, alive: map[int]bool{}}
	w.config = w.anyConfig()
	w.table, w.oracle = slots.New(w.config), oracle{config: w.config}
	w.other = slots.New(slots.Config{})
	return w
}

func (w *walk) anyConfig() slots.Config {
	var c slots.Config
	left := 100
	for _, name := range []string{"a", "b", "c"} {
		if w.rand.IntN(3) > 0 {
			percent := w.rand.IntN(left + 1)
			left -= percent
			c.Partitions = append(c.Partitions, slots.Partition{Name: name, GuaranteedPercent: percent})
		}
	}
	if w.rand.IntN(4) > 0 {
		c.Queue = slots.Queue{MaxLength: 1 + w.rand.IntN(8), MaxWait: limiter.Micros(1 + w.rand.IntN(40))}
	}
	if err := c.Validate(); err != nil {
		w.t.Fatal(err)
	}
	return c
}

func (w *walk) step() {
	w.now += limiter.Instant(w.rand.IntN(4))
	switch w.rand.IntN(20) {
	case 0:
		w.ceiling = w.rand.Int64N(24) - 1
	case 1:
		w.config = w.anyConfig()
		w.table.Reconfigure(w.config)
		w.oracle.reconfigure(w.config)
	case 2:
		w.table.Mark()
		w.before, w.since = max(w.before, w.since), int64(len(w.oracle.inFlight))
	case 3:
		w.table.Forget()
		w.before = 0
	case 4:
		w.releaseForeign()
	case 5, 6:
		w.pump()
	case 7:
		w.expire()
	case 8, 9, 10, 11, 12:
		w.release()
	default:
		w.acquire()
	}
}

func (w *walk) acquire() {
	partition := w.rand.IntN(len(w.config.Partitions)+2) - 1
	id := len(w.tickets)
	total, waiting := w.table.InFlight(), w.table.Waiting()
	usage := w.table.Usage(partition)
	ticket, got := w.table.Acquire(w.now, partition, w.ceiling)
	want := w.oracle.acquire(id, w.now, partition, w.ceiling)
	if got != want {
		w.t.Fatalf("request %d is %d, want %d", id, got, want)
	}
	if got == slots.Admitted {
		if total >= w.ceiling {
			w.t.Fatalf("admitted with %d in flight at ceiling %d", total, w.ceiling)
		}
		w.since = max(w.since, total+1)
	}
	guarantee := w.oracle.guarantee(w.oracle.name(partition), max(0, w.ceiling))
	if total < w.ceiling && usage.InFlight < guarantee && waiting == 0 && got != slots.Admitted {
		w.t.Fatalf("refused %d of %d guaranteed", usage.InFlight+1, guarantee)
	}
	if got == slots.Admitted || got == slots.Queued {
		w.alive[id] = true
		w.ids[ticket] = id
		w.tickets = append(w.tickets, ticket)
	} else if ticket != (slots.Ticket{}) {
		w.t.Fatalf("a request that was refused has ticket %+v", ticket)
	}
}

// release releases any ticket there ever was, mostly a live one.
func (w *walk) release() {
	if len(w.tickets) == 0 {
		return
	}
	id := w.rand.IntN(len(w.tickets))
	if w.rand.IntN(4) > 0 {
		for i := range w.tickets {
			if w.alive[(id+i)%len(w.tickets)] {
				id = (id + i) % len(w.tickets)
				break
			}
		}
	}
	copied := w.tickets[id]
	got, ok := w.table.Release(copied)
	r, wantOK := w.oracle.release(id)
	if ok != wantOK {
		w.t.Fatalf("release of %d is %v, want %v", id, ok, wantOK)
	}
	delete(w.alive, id)
	if ok {
		if d := cmp.Diff(r.use, got); d != "" {
			w.t.Fatalf("use at the admission of %d (-want +got):\n%s", id, d)
		}
	}
}

// releaseForeign releases tickets of another table, whose places have the same
// numbers, and none.
func (w *walk) releaseForeign() {
	for range 8 {
		k, _ := w.other.Acquire(w.now, slots.Rest, 100)
		w.foreign = append(w.foreign, k)
	}
	before := w.table.InFlight()
	for _, k := range append(w.foreign, slots.Ticket{}) {
		if _, ok := w.table.Release(k); ok {
			w.t.Fatal("a foreign ticket freed a slot")
		}
	}
	if got := w.table.InFlight(); got != before {
		w.t.Fatalf("foreign tickets changed %d in flight to %d", before, got)
	}
	w.foreign = w.foreign[:0]
}

// pump admits what may be admitted, first come first served. Afterwards nothing waits
// that may be admitted.
func (w *walk) pump() {
	for {
		ticket, ok := w.table.Next(w.ceiling)
		id, want := w.oracle.next(w.now, w.ceiling)
		if ok != want || ok && w.ids[ticket] != id {
			w.t.Fatalf("next is %d, %v; want %d, %v", w.ids[ticket], ok, id, want)
		}
		if !ok {
			return
		}
		if w.table.InFlight() > w.ceiling {
			w.t.Fatalf("%d in flight over ceiling %d", w.table.InFlight(), w.ceiling)
		}
		w.since = max(w.since, w.table.InFlight())
	}
}

func (w *walk) expire() {
	for {
		ticket, ok := w.table.Expire(w.now)
		id, want := w.oracle.expire(w.now)
		if ok != want || ok && w.ids[ticket] != id {
			w.t.Fatalf("expired %d, %v; want %d, %v", w.ids[ticket], ok, id, want)
		}
		if !ok {
			return
		}
		delete(w.alive, id)
	}
}

// check compares all that can be seen.
func (w *walk) check() {
	type view struct {
		InFlight, Peak int64
		Waiting        int
		Deadline       limiter.Instant
		Waits          bool
		Partitions     [][2]int64
	}
	at, waits := w.table.Deadline()
	got := view{w.table.InFlight(), w.table.Peak(), w.table.Waiting(), at, waits, nil}
	at, waits = w.oracle.deadline()
	want := view{int64(len(w.oracle.inFlight)), max(w.before, w.since), len(w.oracle.waiting), at, waits, nil}
	for p := slots.Rest; p < len(w.config.Partitions); p++ {
		u := w.table.Usage(p)
		got.Partitions = append(got.Partitions, [2]int64{u.InFlight, int64(u.Waiting)})
		name, waiting := w.oracle.name(p), int64(0)
		for _, r := range w.oracle.waiting {
			if r.partition == name {
				waiting++
			}
		}
		want.Partitions = append(want.Partitions, [2]int64{w.oracle.used(name), waiting})
	}
	if d := cmp.Diff(want, got); d != "" {
		w.t.Fatalf("(-want +got):\n%s", d)
	}
	if alive := len(w.alive); alive != len(w.oracle.inFlight)+len(w.oracle.waiting) {
		w.t.Fatalf("%d requests wait or are in flight, but %d did not hear of their end", len(w.oracle.inFlight)+len(w.oracle.waiting), alive)
	}
}

// end gives everything back. Nobody is lost in the queue: each that waits is admitted
// when there is room that is kept for nobody else.
func (w *walk) end() {
	w.ceiling, w.config.Partitions = 1000, nil
	w.table.Reconfigure(w.config)
	w.oracle.reconfigure(w.config)
	w.pump()
	if n := w.table.Waiting(); n != 0 {
		w.t.Fatalf("%d wait below ceiling %d", n, w.ceiling)
	}
	for _, k := range w.tickets {
		w.table.Release(k)
		w.table.Release(k)
	}
	if n := w.table.InFlight(); n != 0 {
		w.t.Fatalf("%d in flight after every ticket was released", n)
	}
}
