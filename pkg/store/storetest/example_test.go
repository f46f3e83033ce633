package storetest_test

import (
	"sync/atomic"
	"testing"

	"github.com/weir-dev/weir/pkg/limiter"
	"github.com/weir-dev/weir/pkg/store/memory"
	"github.com/weir-dev/weir/pkg/store/storetest"
)

// The suite runs in a test of the package that implements a store.
func ExampleRun() {
	_ = func(t *testing.T) { // TestConformance
		storetest.Run(t, func(t *testing.T) storetest.Subject {
			var now atomic.Int64 // microseconds
			now.Store(1_800_000_000_000_000)
			clock := func() limiter.Instant { return limiter.Instant(now.Load()) }
			s := memory.New(memory.Options{Clock: clock})
			return storetest.Subject{
				Store:    s,
				Advance:  func(d limiter.Micros) { now.Add(int64(d)) },
				Counters: s.Len,
				Break:    s.Seal,
				Forget: map[string]func() storetest.Store{
					"crash": func() storetest.Store { return memory.New(memory.Options{Clock: clock}) },
				},
			}
		})
	}
}
