package concurrency

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/weir-dev/weir/pkg/concurrency/slots"
)

func TestCeilingIsTheSmallerOfShareAndInferred(t *testing.T) {
	for name, tc := range map[string]struct {
		share, inferred int64
	}{
		"a small share":   {3, 8},
		"a small backend": {8, 3},
		"no share":        {0, 8},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				cfg := fixed("a", 8)
				cfg.Law.Max = tc.inferred
				g := open(t, cfg, part(tc.share, 8))
				s := fill(t, g)
				if want := min(tc.share, tc.inferred); int64(len(s)) != want || g.Stats().Ceiling != want {
					t.Errorf("%d admitted below a ceiling of %d, want %d", len(s), g.Stats().Ceiling, want)
				}
				expect(t, g, Full)
				release(s)
			})
		})
	}
}

func TestSlotIsReleasedOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := open(t, fixed("a", 4), constant(4))
		other := open(t, fixed("b", 4), constant(4))
		s := take(t, g, 2)
		elsewhere := take(t, other, 2)
		again := s[0]
		for range 3 {
			s[0].Release(Served)
			again.Release(Dropped)
		}
		if got := g.Stats().InFlight; got != 1 {
			t.Errorf("%d in flight after one of two slots was released, want 1", got)
		}
		next := take(t, g, 1) // in the place of the first
		s[0].Release(Served)
		if got := g.Stats().InFlight; got != 2 {
			t.Errorf("%d in flight, want 2: a slot released the one after it", got)
		}
		if got := other.Stats().InFlight; got != 2 {
			t.Errorf("%d in flight at another guard, want 2", got)
		}
		var none Slot
		none.Forward()
		none.Release(Served)
		if none.Fenced() != nil {
			t.Error("no slot has to end")
		}
		release(append(s, next...))
		release(elsewhere)
	})
}

func TestLatencyCountsFromForwarding(t *testing.T) {
	for name, tc := range map[string]struct {
		forward bool
		outcome Outcome
		want    time.Duration
	}{
		"from when it was admitted":           {false, Served, 50 * time.Millisecond},
		"from when it was forwarded":          {true, Served, 30 * time.Millisecond},
		"not of a request that says nothing":  {true, Ignored, 0},
		"not of one that the backend gave up": {true, Dropped, 0},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				g := open(t, inferring(FailClosed), part(6, 6))
				s, _ := g.Acquire(t.Context(), Request{})
				pass(20 * time.Millisecond)
				if tc.forward {
					s.Forward()
				}
				pass(30 * time.Millisecond)
				s.Release(tc.outcome)
				if st := g.Stats(); st.Latency != tc.want || st.Baseline != tc.want {
					t.Errorf("latency %v and baseline %v, want %v", st.Latency, st.Baseline, tc.want)
				}
			})
		})
	}
}

func TestDroppedRequestsLowerTheLimit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := open(t, inferring(FailClosed), part(6, 6))
		for range 50 {
			s := fill(t, g)
			pass(10 * time.Millisecond)
			for _, s := range s {
				s.Release(Dropped)
			}
		}
		if got := g.Stats().Inferred; got >= 6 {
			t.Errorf("the inferred limit is still %d", got)
		}
	})
}

func TestPartitionKeepsItsGuarantee(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cfg := fixed("a", 10)
		cfg.Slots.Partitions = []slots.Partition{{Name: "gold", GuaranteedPercent: 40}, {Name: "silver", GuaranteedPercent: 10}}
		g := open(t, cfg, constant(10))
		ask := func(partition int) (Slot, Verdict) { return g.Acquire(t.Context(), Request{Partition: partition}) }
		var held []Slot
		for range 7 {
			if s, v := ask(slots.Rest); v == Admitted {
				held = append(held, s)
			}
		}
		if len(held) != 5 {
			t.Errorf("the rest got %d slots beside guarantees of 5, want 5", len(held))
		}
		for range 6 {
			if s, v := ask(0); v == Admitted {
				held = append(held, s)
			}
		}
		want := []PartitionStats{{Name: "gold", Guaranteed: 4, InFlight: 4, Refused: 2}, {Name: "silver", Guaranteed: 1}}
		st := g.Stats()
		if diff := cmp.Diff(want, st.Partitions); diff != "" {
			t.Errorf("partitions (-want +got):\n%s", diff)
		}
		if st.Admitted != 9 || st.Refused != 4 || st.InFlight != 9 {
			t.Errorf("%+v", st)
		}
		release(held)
	})
}

// TestReport compares what beats say with what happened between them.
func TestReport(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLine(part(6, 6))
		g := open(t, inferring(FailClosed), l)
		say := func(what string, held, inFlight, peak int64, opinion bool) {
			t.Helper()
			pass(time.Second)
			c := l.last(t)
			if c.Held != held || c.InFlight != inFlight || c.Peak != peak || (c.Limit > 0) != opinion {
				t.Errorf("%s: %+v", what, c)
			}
		}
		first := l.last(t)
		if first.Held != 0 || first.Term != 0 || first.Applied != 0 || first.Seq != 1 || first.Holder != "a" {
			t.Errorf("the first beat: %+v", first)
		}
		say("nothing happened", 6, 0, 0, false)
		for range 20 {
			s := take(t, g, 5)
			pass(10 * time.Millisecond)
			release(s)
		}
		s := take(t, g, 1)
		say("five at most, and latency", 6, 1, 5, true)
		say("nothing new", 6, 1, 1, false)
		more := take(t, g, 3)
		for _, s := range more {
			s.Release(Ignored)
		}
		l.set(func() { l.err = errDefect })
		pass(time.Second)
		say("nobody heard of the peak", 0, 1, 4, false)
		l.set(func() { l.err = nil })
		pass(time.Second)
		say("until now", 6, 1, 1, false)
		release(s)
	})
}

// TestHolderWithoutRequestsTakesOverTheLimitOfTheFleet has the fleet learn meanwhile.
func TestHolderWithoutRequestsTakesOverTheLimitOfTheFleet(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLine(part(6, 6))
		g := open(t, inferring(FailClosed), l)
		l.set(func() { l.to = part(4, 3) })
		pass(time.Second)
		if got := g.Stats().Inferred; got != 3 {
			t.Errorf("infers %d, want the fleet's 3", got)
		}
	})
}

func TestAdmittingAllocatesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := open(t, inferring(FailClosed), part(6, 6))
		ctx := context.Background()
		if n := testing.AllocsPerRun(1000, func() {
			s, _ := g.Acquire(ctx, Request{})
			s.Forward()
			s.Release(Served)
		}); n != 0 {
			t.Errorf("%v allocations for a request", n)
		}
		s := fill(t, g)
		if n := testing.AllocsPerRun(1000, func() { g.Acquire(ctx, Request{}) }); n != 0 {
			t.Errorf("%v allocations for a refused request", n)
		}
		release(s)
	})
}

func TestVerdictsHaveNames(t *testing.T) {
	seen := map[string]bool{}
	for v := Admitted; v <= Closed; v++ {
		if seen[v.String()] || v.String() == (Closed+1).String() {
			t.Errorf("verdict %d is called %q", v, v)
		}
		seen[v.String()] = true
	}
}

// TestAPanicKeepsNobodyFromAsking takes the guard's clock away for one request.
func TestAPanicKeepsNobodyFromAsking(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := open(t, fixed("a", 4), constant(4))
		clock := g.clock
		g.clock = nil
		func() {
			defer func() {
				if recover() == nil {
					t.Error("there was no panic to survive")
				}
			}()
			g.Acquire(t.Context(), Request{})
		}()
		g.clock = clock
		if !g.mu.TryLock() {
			t.Fatal("the guard stays locked")
		}
		g.mu.Unlock()
		release(take(t, g, 1))
	})
}
