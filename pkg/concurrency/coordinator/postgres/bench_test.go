package postgres

import (
	"testing"

	"github.com/weir-dev/weir/internal/testing/pooltest"
	"github.com/weir-dev/weir/internal/testing/postgrestest"
)

func BenchmarkApply(b *testing.B) {
	pooltest.Benchmark(b, New(dial(b, postgrestest.Start(b))))
}
