package slots_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/weir-dev/weir/pkg/concurrency/slots"
	"github.com/weir-dev/weir/pkg/limiter"
)

const (
	gold   = 0
	silver = 1
)

// guaranteed keeps half of the ceiling for gold and a quarter for silver.
var guaranteed = slots.Config{
	Partitions: []slots.Partition{{Name: "gold", GuaranteedPercent: 50}, {Name: "silver", GuaranteedPercent: 25}},
	Queue:      slots.Queue{MaxLength: 3, MaxWait: 100},
}

// A script is a story of one table; names stand for tickets.
type script struct {
	t       *testing.T
	table   *slots.Table
	now     limiter.Instant
	ceiling int64
	tickets map[string]slots.Ticket
}

func play(t *testing.T, c slots.Config, ceiling int64) *script {
	t.Helper()
	if err := c.Validate(); err != nil {
		t.Fatal(err)
	}
	return &script{t: t, table: slots.New(c), ceiling: ceiling, tickets: map[string]slots.Ticket{}}
}

func (s *script) acquire(name string, partition int, want slots.Outcome) {
	s.t.Helper()
	k, got := s.table.Acquire(s.now, partition, s.ceiling)
	if got != want {
		s.t.Errorf("%s is %d, want %d", name, got, want)
	}
	s.tickets[name] = k
}

func (s *script) release(name string, want bool) {
	s.t.Helper()
	if _, got := s.table.Release(s.tickets[name]); got != want {
		s.t.Errorf("release of %s is %v, want %v", name, got, want)
	}
}

// all names the tickets that come out of the function until none does.
func (s *script) all(pop func() (slots.Ticket, bool), want ...string) {
	s.t.Helper()
	var got []string
	for k, ok := pop(); ok; k, ok = pop() {
		for name, ticket := range s.tickets {
			if k == ticket {
				got = append(got, name)
			}
		}
	}
	if d := cmp.Diff(want, got); d != "" {
		s.t.Errorf("tickets (-want +got):\n%s", d)
	}
}

func (s *script) next() (slots.Ticket, bool)   { return s.table.Next(s.ceiling) }
func (s *script) expire() (slots.Ticket, bool) { return s.table.Expire(s.now) }

// TestStories follows tables through what happens to them.
func TestStories(t *testing.T) {
	for name, tc := range map[string]struct {
		config  slots.Config
		ceiling int64
		story   func(*script)
	}{
		"the ceiling is the most in flight": {slots.Config{}, 2, func(s *script) {
			s.acquire("a", slots.Rest, slots.Admitted)
			s.acquire("b", slots.Rest, slots.Admitted)
			s.acquire("c", slots.Rest, slots.Full)
			s.release("a", true)
			s.acquire("d", slots.Rest, slots.Admitted)
		}},
		"nothing is admitted below a ceiling of nothing": {slots.Config{}, 0, func(s *script) {
			s.acquire("a", slots.Rest, slots.Full)
			s.ceiling = -5
			s.acquire("b", slots.Rest, slots.Full)
		}},
		"what is in flight drains when the ceiling falls": {slots.Config{}, 3, func(s *script) {
			s.acquire("a", slots.Rest, slots.Admitted)
			s.acquire("b", slots.Rest, slots.Admitted)
			s.acquire("c", slots.Rest, slots.Admitted)
			s.ceiling = 1
			s.release("a", true)
			s.acquire("d", slots.Rest, slots.Full)
			s.release("b", true)
			s.acquire("e", slots.Rest, slots.Full)
			s.release("c", true)
			s.acquire("f", slots.Rest, slots.Admitted)
		}},
		"a ticket gives back one slot": {slots.Config{}, 1, func(s *script) {
			s.acquire("a", slots.Rest, slots.Admitted)
			s.tickets["copy"] = s.tickets["a"]
			s.release("a", true)
			s.release("copy", false)
			s.acquire("b", slots.Rest, slots.Admitted)
			s.release("a", false)
			s.release("copy", false)
			s.acquire("c", slots.Rest, slots.Full)
		}},
		"the rest leaves what is guaranteed": {guaranteed, 8, func(s *script) {
			s.acquire("1", slots.Rest, slots.Admitted)
			s.acquire("2", slots.Rest, slots.Admitted)
			s.acquire("3", slots.Rest, slots.Queued)
			for range 4 {
				s.acquire("gold", gold, slots.Admitted)
			}
			s.acquire("silver", silver, slots.Admitted)
			s.acquire("silver", silver, slots.Admitted)
			s.acquire("more gold", gold, slots.Queued)
		}},
		"a partition may use more than its guarantee when that leaves the others theirs": {guaranteed, 8, func(s *script) {
			for range 4 {
				s.acquire("silver", silver, slots.Admitted)
			}
			s.acquire("silver", silver, slots.Queued)
			for range 4 {
				s.acquire("gold", gold, slots.Admitted)
			}
		}},
		"a guarantee does not lift the ceiling after it fell": {guaranteed, 8, func(s *script) {
			for range 4 {
				s.acquire("silver", silver, slots.Admitted)
			}
			s.ceiling = 4
			s.acquire("gold", gold, slots.Queued)
			s.all(s.next)
		}},
		"the first that waits gets the slot": {slots.Config{Queue: guaranteed.Queue}, 1, func(s *script) {
			s.acquire("a", slots.Rest, slots.Admitted)
			s.acquire("b", slots.Rest, slots.Queued)
			s.acquire("c", slots.Rest, slots.Queued)
			s.release("a", true)
			s.acquire("d", slots.Rest, slots.Queued)
			s.acquire("e", slots.Rest, slots.Overflow)
			s.all(s.next, "b")
			s.release("b", true)
			s.all(s.next, "c")
		}},
		"one that may be admitted passes one that may not": {guaranteed, 4, func(s *script) {
			s.acquire("rest", slots.Rest, slots.Admitted)
			s.acquire("gold", gold, slots.Admitted)
			s.acquire("silver", silver, slots.Admitted)
			s.acquire("rest waits", slots.Rest, slots.Queued)
			s.acquire("silver waits", silver, slots.Queued)
			s.acquire("gold passes", gold, slots.Admitted)
			s.release("silver", true)
			s.all(s.next, "silver waits")
			s.release("rest", true)
			s.all(s.next, "rest waits")
		}},
		"one that waits leaves by its ticket": {slots.Config{Queue: guaranteed.Queue}, 1, func(s *script) {
			s.acquire("a", slots.Rest, slots.Admitted)
			s.acquire("b", slots.Rest, slots.Queued)
			s.acquire("c", slots.Rest, slots.Queued)
			s.acquire("d", slots.Rest, slots.Queued)
			s.release("c", false)
			s.release("c", false)
			s.release("a", true)
			s.all(s.next, "b")
			s.release("b", true)
			s.all(s.next, "d")
		}},
		"one that waited too long is put out": {slots.Config{Queue: guaranteed.Queue}, 1, func(s *script) {
			s.acquire("a", slots.Rest, slots.Admitted)
			s.acquire("b", slots.Rest, slots.Queued)
			s.now = 60
			s.acquire("c", slots.Rest, slots.Queued)
			s.now = 99
			s.all(s.expire)
			s.now = 100
			s.all(s.expire, "b")
			s.release("b", false)
			if at, ok := s.table.Deadline(); !ok || at != 160 {
				s.t.Errorf("deadline is %d, %v", at, ok)
			}
			s.release("a", true)
			s.all(s.next, "c")
			s.release("b", false)
			s.acquire("d", slots.Rest, slots.Queued)
		}},
		"flushing empties the queue in order": {guaranteed, 0, func(s *script) {
			s.acquire("a", silver, slots.Queued)
			s.acquire("b", gold, slots.Queued)
			s.acquire("c", silver, slots.Queued)
			s.all(s.table.Flush, "a", "b", "c")
		}},
		"a queue that is taken away puts out all that wait": {slots.Config{Queue: guaranteed.Queue}, 0, func(s *script) {
			s.acquire("a", slots.Rest, slots.Queued)
			s.acquire("b", slots.Rest, slots.Queued)
			s.table.Reconfigure(slots.Config{})
			s.all(s.expire, "a", "b")
		}},
		"partitions are known again by their names": {guaranteed, 4, func(s *script) {
			s.acquire("silver", silver, slots.Admitted)
			s.acquire("gold", gold, slots.Admitted)
			s.table.Reconfigure(slots.Config{Partitions: []slots.Partition{{Name: "silver", GuaranteedPercent: 75}}})
			if d := cmp.Diff(slots.Usage{InFlight: 1, Guarantee: 3}, s.table.Usage(0)); d != "" {
				s.t.Errorf("silver (-want +got):\n%s", d)
			}
			s.acquire("rest", slots.Rest, slots.Full)
			s.release("gold", true)
			s.acquire("rest", slots.Rest, slots.Admitted)
		}},
		"a peak stays until a report of it arrived": {slots.Config{}, 9, func(s *script) {
			peak := func(want int64) {
				s.t.Helper()
				if got := s.table.Peak(); got != want {
					s.t.Errorf("peak is %d, want %d", got, want)
				}
			}
			for _, name := range []string{"a", "b", "c"} {
				s.acquire(name, slots.Rest, slots.Admitted)
			}
			s.release("a", true)
			s.release("b", true)
			s.table.Mark()
			peak(3)
			s.acquire("d", slots.Rest, slots.Admitted)
			s.release("d", true)
			s.table.Mark() // the first report was lost
			peak(3)
			s.table.Forget()
			peak(1)
			s.table.Mark()
			s.release("c", true)
			s.table.Forget()
			peak(1)
		}},
	} {
		t.Run(name, func(t *testing.T) { tc.story(play(t, tc.config, tc.ceiling)) })
	}
}

// TestReleaseReportsTheAdmission reads what a limit is learned from.
func TestReleaseReportsTheAdmission(t *testing.T) {
	table := slots.New(guaranteed)
	table.Acquire(10, silver, 3)
	waits, _ := table.Acquire(15, gold, 1)
	if k, ok := table.Next(4); !ok || k != waits {
		t.Fatalf("next is %v, %v", k, ok)
	}
	got, ok := table.Release(waits)
	want := slots.Use{InFlight: 2, Ceiling: 4}
	if d := cmp.Diff(want, got); !ok || d != "" {
		t.Errorf("use (-want +got):\n%s", d)
	}
}

// TestValidateNamesTheField checks what is refused.
func TestValidateNamesTheField(t *testing.T) {
	part := func(name string, percent int) slots.Partition {
		return slots.Partition{Name: name, GuaranteedPercent: percent}
	}
	for name, tc := range map[string]struct {
		config slots.Config
		want   string // empty when it is valid
	}{
		"nothing set":                {slots.Config{}, ""},
		"everything set":             {guaranteed, ""},
		"all of it guaranteed":       {slots.Config{Partitions: []slots.Partition{part("a", 100), part("b", 0)}}, ""},
		"more than all guaranteed":   {slots.Config{Partitions: []slots.Partition{part("a", 60), part("b", 41)}}, "partitions guarantee 101 percent together, over 100"},
		"a negative guarantee":       {slots.Config{Partitions: []slots.Partition{part("a", -1)}}, "partitions[0] guaranteedPercent is -1, outside 0 to 100"},
		"a name used twice":          {slots.Config{Partitions: []slots.Partition{part("a", 1), part("a", 1)}}, `partitions[1] name "a" is used twice`},
		"too many partitions":        {slots.Config{Partitions: many(17)}, "partitions are 17, over 16"},
		"a queue nobody may wait in": {slots.Config{Queue: slots.Queue{MaxLength: 1}}, "queue maxWait is 0µs, not positive"},
		"a queue of negative length": {slots.Config{Queue: slots.Queue{MaxLength: -1}}, "queue maxLength is -1, below 0"},
	} {
		t.Run(name, func(t *testing.T) {
			got := ""
			if err := tc.config.Validate(); err != nil {
				got = err.Error()
			}
			if got != tc.want {
				t.Errorf("error is %q, want %q", got, tc.want)
			}
		})
	}
}

func many(n int) []slots.Partition {
	var out []slots.Partition
	for i := range n {
		out = append(out, slots.Partition{Name: string(rune('a' + i))})
	}
	return out
}
