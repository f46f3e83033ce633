package memory_test

import (
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"github.com/weir-dev/weir/pkg/limiter"
	"github.com/weir-dev/weir/pkg/store"
	"github.com/weir-dev/weir/pkg/store/memory"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// TestAFloodOfKeysIsForgotten runs far more keys through a store than are ever
// open together and watches how many it keeps.
func TestAFloodOfKeysIsForgotten(t *testing.T) {
	const perStep, steps = 500, 100
	clock := newFakeClock(epoch)
	s := memory.New(memory.Options{Clock: clock.Now})
	p := perWindow(1, limiter.MinWindow)
	for step := range steps {
		for i := range perStep {
			apply(t, s, counterOf(fmt.Sprint(step, i)), p, lease(1))
		}
		clock.Advance(limiter.MinWindow)
		// A key counts for two windows, and a sweep needs about as many calls as there are counters.
		if got := s.Len(); got > 6*perStep {
			t.Fatalf("%d counters after %d steps of %d", got, step+1, perStep)
		}
	}
	clock.Advance(2 * limiter.MinWindow)
	for range 10 * perStep {
		apply(t, s, counterOf("survivor"), p, lease(1))
	}
	if got := s.Len(); got != 1 {
		t.Errorf("%d counters in the end, want 1", got)
	}
	if !s.Has(counterOf("survivor")) || s.Has(counterOf("00")) {
		t.Error("another counter is held than the one asked for")
	}
	if now := clock.Now(); !s.Counts(counterOf("survivor"), now) || s.Counts(counterOf("00"), now) || s.Counts(counterOf("survivor"), now.Add(limiter.MinWindow)) {
		t.Error("another counter counts than the one asked for, or for longer than its window")
	}
}

// TestSealLosesNoGrant seals a store while many ask and compares what they got
// with what the successor knows.
func TestSealLosesNoGrant(t *testing.T) {
	clock := newFakeClock(epoch - 1)
	s := memory.New(memory.Options{Clock: clock.Now})
	clock.Advance(2)
	p := perWindow(limiter.MaxLimit, limiter.Second)
	var mu sync.Mutex
	var granted int64
	var started, wg sync.WaitGroup
	for range 8 {
		started.Add(1)
		wg.Go(func() {
			first := sync.OnceFunc(started.Done)
			for {
				res, err := s.Apply(t.Context(), counterOf("a"), p, lease(1))
				if err != nil {
					return
				}
				mu.Lock()
				granted += res.Granted
				mu.Unlock()
				first()
			}
		})
	}
	started.Wait()
	successor := succeed(t, s, clock, 1)
	wg.Wait()
	if res := apply(t, successor, counterOf("a"), p, lease(1)); res.Windows.Open[0].Granted != granted+1 {
		t.Errorf("the successor counts %d, holders got %d", res.Windows.Open[0].Granted-1, granted)
	}
}

func TestClockNeverFallsBelowItsFloor(t *testing.T) {
	for name, c := range map[string]struct{ ahead, want limiter.Micros }{
		"without a predecessor it starts at the wall clock": {-limiter.Micros(epoch), 0},
		"it starts where a predecessor that was ahead was":  {limiter.Second, limiter.Second},
		"it leaves behind a predecessor that was not":       {-1, 0},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				wall := limiter.Instant(time.Now().UnixMicro())
				clock := memory.NewClock(time.Now(), max(0, wall.Add(c.ahead)))
				if got := clock.Now().Sub(wall); got != c.want {
					t.Errorf("starts %dµs after the wall clock, want %d", got, c.want)
				}
				<-time.After(time.Minute)
				if got := clock.Now().Sub(wall) - c.want; got != 60*limiter.Second {
					t.Errorf("a minute lasts %dµs", got)
				}
			})
		})
	}
}

func BenchmarkApply(b *testing.B) {
	for _, keys := range []int{1, 100_000} {
		b.Run(fmt.Sprint(keys, " keys"), func(b *testing.B) {
			s := memory.New(memory.Options{Clock: memory.NewClock(time.Now(), 0).Now})
			p := perWindow(limiter.MaxLimit, limiter.Second)
			names := make([]string, keys)
			for i := range names {
				names[i] = fmt.Sprint(i)
			}
			b.ReportAllocs()
			for i := 0; b.Loop(); i++ {
				if _, err := s.Apply(b.Context(), counterOf(names[i%keys]), p, lease(1)); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// TestAbsencesAreAskedForAfterTheClockIsRead, so that they are known up to the instant at
// which is decided.
func TestAbsencesAreAskedForAfterTheClockIsRead(t *testing.T) {
	var reads, before int
	asked := false
	s := memory.New(memory.Options{
		Clock: func() limiter.Instant { reads++; return limiter.Instant(limiter.Day) },
		Absences: func(store.Scope) []limiter.Absence {
			asked = true
			if reads == before {
				t.Error("the clock was not read yet")
			}
			return nil
		},
	})
	p := limiter.Params{Generation: 1, Rates: []limiter.Rate{{Limit: 1, Window: limiter.Second}}}
	before = reads
	if _, err := s.Apply(t.Context(), store.Key{Scope: store.Scope{Limit: "all"}}, p, limiter.Command{Op: limiter.Take, Min: 1, Want: 1}); err != nil || !asked {
		t.Errorf("asked for absences %t, error %v", asked, err)
	}
}
