package redis

import (
	"testing"

	"github.com/weir-dev/weir/pkg/concurrency/coordinator/coordtest"
	"github.com/weir-dev/weir/pkg/store/storetest/redistest"
)

func BenchmarkApply(b *testing.B) {
	coordtest.Benchmark(b, New(dial(b, redistest.Start(b))))
}
