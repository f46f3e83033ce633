package pools_test

import (
	"net/http"
	"net/http/httptest"
	"runtime"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weir-dev/weir/internal/sidecar/enforce"
	"github.com/weir-dev/weir/internal/sidecar/pools"
	"github.com/weir-dev/weir/pkg/concurrency"
	"github.com/weir-dev/weir/pkg/concurrency/coordinator/memory"
	"github.com/weir-dev/weir/pkg/limiter"
	"github.com/weir-dev/weir/pkg/policy"
)

// TestOnePoolAllocatesNothing for a request, and neither does none.
func TestOnePoolAllocatesNothing(t *testing.T) {
	some := below("/", "some", 2)
	for name, apply := range map[string]func(s *sidecar){
		"no pool":                   func(s *sidecar) { s.apply(nil) },
		"one pool":                  func(s *sidecar) { s.apply(newPool(2)) },
		"one pool of some requests": func(s *sidecar) { s.together(nil, some) },
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, enforce.Enforce, func(t *testing.T, s *sidecar) {
				apply(s)
				r := httptest.NewRequest(http.MethodGet, "/", http.NoBody)
				synctest.Wait()
				n := testing.AllocsPerRun(100, func() {
					slot, _ := s.Acquire(r)
					slot.Release(concurrency.Served)
				})
				if n != 0 {
					t.Errorf("a request allocates %v times", n)
				}
			})
		})
	}
}

// BenchmarkAcquire takes a slot of each pool and gives it back.
func BenchmarkAcquire(b *testing.B) {
	wide := newPool(100)
	for name, set := range map[string]policy.Snapshot{
		"none": {Cluster: "test"},
		"one":  {Cluster: "test", Pool: wide},
		"two":  {Cluster: "test", Pool: wide, Pools: []policy.Pool{below("/", "some", 100)}},
	} {
		b.Run(name, func(b *testing.B) {
			now := func() limiter.Instant { return limiter.Instant(time.Now().UnixMicro()) }
			k := pools.New(pools.Config{Holder: "uid/nonce", Mode: enforce.Enforce, Coordinators: &world{
				memory: memory.New(memory.Options{Clock: now, Term: 1, First: true}),
			}})
			defer k.Close(b.Context())
			compiled, err := policy.Compile(set)
			if err != nil {
				b.Fatal(err)
			}
			if err := k.Apply(compiled); err != nil {
				b.Fatal(err)
			}
			for slices.ContainsFunc(k.States(), func(p pools.State) bool { return p.Stats.Share == 0 }) {
				runtime.Gosched()
			}
			r := httptest.NewRequest(http.MethodGet, "/", http.NoBody)
			b.ReportAllocs()
			for b.Loop() {
				slot, refusal := k.Acquire(r)
				if refusal != nil {
					b.Fatal(refusal)
				}
				slot.Release(concurrency.Served)
			}
		})
	}
}
