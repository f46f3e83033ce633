package redis

import (
	"testing"

	"github.com/weir-dev/weir/internal/testing/budgettest"
	"github.com/weir-dev/weir/internal/testing/redistest"
)

func BenchmarkApply(b *testing.B) {
	budgettest.Benchmark(b, budgettest.Subject{Coordinator: New(dial(b, redistest.Start(b)))})
}
