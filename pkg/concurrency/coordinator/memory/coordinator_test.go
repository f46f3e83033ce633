package memory_test

import (
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/weir-dev/weir/internal/testing/pooltest"
	"github.com/weir-dev/weir/internal/testing/suite"
	"github.com/weir-dev/weir/pkg/concurrency/coordinator/memory"
	"github.com/weir-dev/weir/pkg/concurrency/pool"
	"github.com/weir-dev/weir/pkg/limiter"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestConformance(t *testing.T) {
	for name, first := range map[string]bool{"the first coordinator": true, "a later one": false} {
		t.Run(name, func(t *testing.T) {
			pooltest.Run(t, func(t *testing.T) pooltest.Subject { return subject(t, first) })
		})
	}
}

// TestConformanceByAClockThatCannotBeSet is for the suite: what a coordinator's clock
// cannot be set, it waits for.
func TestConformanceByAClockThatCannotBeSet(t *testing.T) {
	t.Parallel()
	pooltest.Run(t, func(t *testing.T) pooltest.Subject {
		t.Parallel()
		now := func() limiter.Instant { return limiter.Instant(time.Now().UnixMicro()) }
		c := memory.New(memory.Options{Clock: now, Term: 1, First: true})
		return pooltest.Subject{
			Coordinator: c, Break: c.Seal,
			Advance: func(d limiter.Micros) { <-time.After(time.Duration(d) * time.Microsecond) },
			Forget: map[string]func() pooltest.Coordinator{
				"a crash": func() pooltest.Coordinator { return memory.New(memory.Options{Clock: now, Term: 2}) },
			},
		}
	})
}

func subject(t *testing.T, first bool) pooltest.Subject {
	now := suite.NewClock(suite.Start)
	term := int64(1)
	c := memory.New(memory.Options{Clock: now.Now, Term: term, First: first})
	next := func() *memory.Coordinator {
		term++
		c = memory.New(memory.Options{Clock: now.Now, Term: term})
		return c
	}
	return pooltest.Subject{
		Coordinator: c, Advance: now.Advance, Set: now.Set, Break: func() { c.Seal() },
		Forget: map[string]func() pooltest.Coordinator{
			"a crash": func() pooltest.Coordinator { return next() },
		},
		Keep: map[string]func() pooltest.Coordinator{
			"a hand-over": func() pooltest.Coordinator {
				data := export(t, c)
				now.Set(now.Now() / 2) // the clock of another machine
				if err := next().Import(data); err != nil {
					t.Fatal(err)
				}
				return c
			},
		},
	}
}

func export(t *testing.T, c *memory.Coordinator) []byte {
	t.Helper()
	data, err := c.Export(1 << 20)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

var web = pool.Key{Cluster: "c", Namespace: "n", Name: "web"}

func params(limit int64) pool.Params {
	return pool.Params{Min: limit, Max: limit, Initial: limit, TTL: 2 * limiter.Second, Quarantine: 2 * limiter.Second, Generation: 1}
}

func beat(t *testing.T, c *memory.Coordinator, key pool.Key, cmd pool.Command) pool.Grant {
	t.Helper()
	cmd.Op = pool.Beat
	g, err := c.Apply(t.Context(), key, params(8), cmd)
	if err != nil {
		t.Fatal(err)
	}
	return g
}
