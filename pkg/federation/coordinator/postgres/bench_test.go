package postgres

import (
	"testing"

	"github.com/weir-dev/weir/pkg/federation/coordinator/coordtest"
	"github.com/weir-dev/weir/pkg/store/storetest/postgrestest"
)

func BenchmarkApply(b *testing.B) {
	coordtest.Benchmark(b, coordtest.Subject{Coordinator: New(dial(b, postgrestest.Start(b), 0))})
}
