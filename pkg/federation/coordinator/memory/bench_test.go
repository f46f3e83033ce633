package memory_test

import (
	"testing"

	"github.com/weir-dev/weir/pkg/federation/coordinator/coordtest"
)

func BenchmarkApply(b *testing.B) { coordtest.Benchmark(b, running()) }
