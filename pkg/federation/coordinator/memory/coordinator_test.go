package memory_test

import (
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/weir-dev/weir/internal/testing/budgettest"
	"github.com/weir-dev/weir/internal/testing/suite"
	"github.com/weir-dev/weir/pkg/federation"
	"github.com/weir-dev/weir/pkg/federation/coordinator/memory"
	"github.com/weir-dev/weir/pkg/federation/ledger"
	"github.com/weir-dev/weir/pkg/limiter"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var _ federation.Coordinator = budgettest.Coordinator(nil) // what passes the suite is one

func TestConformance(t *testing.T) {
	for name, first := range map[string]bool{"the first coordinator": true, "a later one": false} {
		t.Run(name, func(t *testing.T) {
			budgettest.Run(t, func(*testing.T) budgettest.Subject {
				now := suite.NewClock(suite.Start)
				s := subject(now.Now, first)
				s.Advance, s.Set = now.Advance, now.Set
				return s
			})
		})
	}
}

// TestConformanceByAClockThatCannotBeSet is for the suite: what a coordinator's clock
// cannot be set, it waits for.
func TestConformanceByAClockThatCannotBeSet(t *testing.T) {
	t.Parallel()
	budgettest.Run(t, func(t *testing.T) budgettest.Subject {
		t.Parallel()
		return running()
	})
}

func TestNoLossGrantsTooMuch(t *testing.T) {
	t.Parallel()
	s := running()
	var c switched
	c.set(s.Coordinator)
	crash := func() { c.set(s.Forget["a crash"]()) }
	s.Coordinator = &c
	budgettest.Storm(t, s, []func(){crash, crash, crash})
}

func running() budgettest.Subject {
	s := subject(func() limiter.Instant { return limiter.Instant(time.Now().UnixMicro()) }, true)
	s.Advance = func(d limiter.Micros) { <-time.After(time.Duration(d) * time.Microsecond) }
	return s
}

// subject returns one by a clock.
func subject(now func() limiter.Instant, first bool) budgettest.Subject {
	c := memory.New(memory.Options{Clock: now, Term: 1, First: first})
	return budgettest.Subject{
		Coordinator: c,
		Memory:      func(string) ledger.Memory { return c.Memory() },
		Forget: map[string]func() budgettest.Coordinator{
			"a crash": func() budgettest.Coordinator {
				c = memory.New(memory.Options{Clock: now, Term: c.Memory().Term + 1})
				return c
			},
		},
	}
}
