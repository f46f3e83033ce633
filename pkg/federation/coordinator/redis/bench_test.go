package redis

import (
	"testing"

	"github.com/weir-dev/weir/internal/testing/budgettest"
	"github.com/weir-dev/weir/internal/testing/redistest"
	"github.com/weir-dev/weir/internal/testing/redistest/dial"
)

func BenchmarkApply(b *testing.B) {
	budgettest.Benchmark(b, budgettest.Subject{Coordinator: New(dial.Server(b, redistest.Start(b)))})
}
