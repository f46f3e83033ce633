package redis

import (
	"testing"

	"github.com/weir-dev/weir/internal/testing/pooltest"
	"github.com/weir-dev/weir/internal/testing/redistest"
)

func BenchmarkApply(b *testing.B) {
	pooltest.Benchmark(b, New(dial(b, redistest.Start(b))))
}
