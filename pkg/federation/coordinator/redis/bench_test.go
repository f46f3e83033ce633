package redis

import (
	"testing"

	"github.com/weir-dev/weir/pkg/federation/coordinator/coordtest"
	"github.com/weir-dev/weir/pkg/store/storetest/redistest"
)

func BenchmarkApply(b *testing.B) {
	coordtest.Benchmark(b, coordtest.Subject{Coordinator: New(dial(b, redistest.Start(b)))})
}
