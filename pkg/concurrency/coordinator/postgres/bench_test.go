package postgres

import (
	"testing"

	"github.com/weir-dev/weir/pkg/concurrency/coordinator/coordtest"
	"github.com/weir-dev/weir/pkg/store/storetest/postgrestest"
)

func BenchmarkApply(b *testing.B) {
	coordtest.Benchmark(b, New(dial(b, postgrestest.Start(b))))
}
