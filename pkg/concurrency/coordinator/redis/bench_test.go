package redis

import (
	"testing"

	"github.com/weir-dev/weir/internal/testing/pooltest"
	"github.com/weir-dev/weir/internal/testing/redistest"
	"github.com/weir-dev/weir/internal/testing/redistest/dial"
)

func BenchmarkApply(b *testing.B) {
	pooltest.Benchmark(b, New(dial.Server(b, redistest.Start(b))))
}
