package memory_test

import (
	"sync/atomic"
	"testing"

	"github.com/weir-dev/weir/pkg/limiter"
	"github.com/weir-dev/weir/pkg/store/memory"
	"github.com/weir-dev/weir/pkg/store/storetest"
)

// A fakeClock moves when the test moves it.
type fakeClock struct{ now atomic.Int64 }

func newFakeClock(now limiter.Instant) *fakeClock {
	c := &fakeClock{}
	c.now.Store(int64(now))
	return c
}

func (c *fakeClock) Now() limiter.Instant { return limiter.Instant(c.now.Load()) }

func (c *fakeClock) Advance(d limiter.Micros) { c.now.Add(int64(d)) }

func TestConformance(t *testing.T) {
	storetest.Run(t, func(*testing.T) storetest.Subject {
		clock := newFakeClock(1_790_000_000_123_456)
		s := memory.New(memory.Options{Clock: clock.Now})
		return storetest.Subject{
			Store:    s,
			Advance:  clock.Advance,
			Counters: s.Len,
			Break:    s.Seal,
			Forget: map[string]func() storetest.Store{
				"crash": func() storetest.Store { return memory.New(memory.Options{Clock: clock.Now}) },
			},
		}
	})
}
