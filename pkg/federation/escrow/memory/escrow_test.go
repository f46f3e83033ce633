package memory_test

import (
	"fmt"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/weir-dev/weir/internal/testing/escrowtest"
	"github.com/weir-dev/weir/internal/testing/suite"
	"github.com/weir-dev/weir/pkg/federation/escrow"
	"github.com/weir-dev/weir/pkg/federation/escrow/memory"
	"github.com/weir-dev/weir/pkg/limiter"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestConformance(t *testing.T) {
	escrowtest.Run(t, func(t *testing.T) escrowtest.Subject { return subject(t) })
}

func FuzzStep(f *testing.F) { escrowtest.Fuzz(f, subject) }

func subject(testing.TB) escrowtest.Subject {
	now := suite.NewClock(suite.Start)
	o := memory.Options{Clock: now.Now}
	return escrowtest.Subject{
		Escrow: memory.New(o), Began: suite.Start, Advance: now.Advance, Set: now.Set,
		Forget: map[string]func() escrowtest.Escrow{
			"a crash": func() escrowtest.Escrow { now.Advance(1); return memory.New(o) },
		},
	}
}

// TestConformanceByItsOwnClock waits for what cannot be set.
func TestConformanceByItsOwnClock(t *testing.T) {
	t.Parallel()
	escrowtest.Run(t, func(t *testing.T) escrowtest.Subject {
		t.Parallel()
		e := memory.New(memory.Options{})
		return escrowtest.Subject{
			Escrow: e, Began: memory.Since(e),
			Advance: func(d limiter.Micros) { <-time.After(time.Duration(d) * time.Microsecond) },
			Forget: map[string]func() escrowtest.Escrow{
				"a crash": func() escrowtest.Escrow { return memory.New(memory.Options{}) },
			},
		}
	})
}

// TestABudgetThatNobodyAsksForIsForgotten lets one more come when no window of the
// first can be open.
func TestABudgetThatNobodyAsksForIsForgotten(t *testing.T) {
	now := suite.NewClock(suite.Start)
	e := memory.New(memory.Options{Clock: now.Now})
	peek := func(id string) {
		t.Helper()
		if _, err := e.Apply(t.Context(), id, escrow.Command{Op: escrow.Peek}); err != nil {
			t.Fatal(err)
		}
	}
	for i := range 3 {
		peek(fmt.Sprint("old-", i))
	}
	now.Advance(limiter.MaxWindow)
	peek("new")
	if n := memory.Len(e); n != 4 {
		t.Errorf("%d are known, want 4", n)
	}
	now.Advance(1)
	peek("newer")
	if n := memory.Len(e); n != 2 {
		t.Errorf("%d are known, want 2", n)
	}
}

func BenchmarkApply(b *testing.B) { escrowtest.Benchmark(b, memory.New(memory.Options{})) }

// TestProcessesTakeNoMoreThanTheLimit has no losses, only haste.
func TestProcessesTakeNoMoreThanTheLimit(t *testing.T) {
	t.Parallel()
	idle := func() { <-time.After(300 * time.Millisecond) }
	escrowtest.Storm(t, memory.New(memory.Options{}), []func(){idle, idle})
}
