package postgres

import (
	"testing"

	"github.com/weir-dev/weir/internal/testing/budgettest"
	"github.com/weir-dev/weir/internal/testing/postgrestest"
)

func BenchmarkApply(b *testing.B) {
	budgettest.Benchmark(b, budgettest.Subject{Coordinator: New(dial(b, postgrestest.Start(b), 0))})
}
