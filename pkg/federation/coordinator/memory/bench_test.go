package memory_test

import (
	"testing"

	"github.com/weir-dev/weir/internal/testing/budgettest"
)

func BenchmarkApply(b *testing.B) { budgettest.Benchmark(b, running()) }
