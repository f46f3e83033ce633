package twotier

import (
	"context"
	"fmt"
	"runtime"
	"testing"

	"github.com/weir-dev/weir/pkg/limiter"
	"github.com/weir-dev/weir/pkg/store"
)

// granter grants all that it is asked for, and keeps nothing.
type granter struct{}

func (granter) Apply(_ context.Context, _ store.Key, p limiter.Params, c limiter.Command) (limiter.Result, error) {
	_, r := p.Step(limiter.State{}, 946_684_800_000_000, c)
	return r, nil
}

// TestAKeyTakesAtMost160Bytes measures what a limiter needs for each key that it has
// credits for, beyond the bytes of the key.
func TestAKeyTakesAtMost160Bytes(t *testing.T) {
	const n = 60_000
	for name, size := range map[string]SizeType{"fixed": Fixed, "adaptive": Adaptive} {
		t.Run(name, func(t *testing.T) {
			cfg := perSecond(1000, 10)
			cfg.Params.Rates[0].Window = limiter.MaxWindow
			cfg.Size.Type, cfg.MaxKeys = size, n
			l := New(cfg, newBreaker(granter{}, newClock()))
			values := make([]string, n)
			for i := range values {
				values[i] = fmt.Sprintf("%032d", i)
			}
			before := heap()
			for _, v := range values {
				if d, err := l.Acquire(t.Context(), Request{Value: v, Cost: 1}); err != nil || !d.Allowed {
					t.Fatalf("got %+v, %v", d, err)
				}
			}
			if got := float64(heap()-before) / n; got > 160 {
				t.Errorf("%.0f bytes a key, want at most 160", got)
			} else {
				t.Logf("%.0f bytes a key", got)
			}
			runtime.KeepAlive(values)
			ctx, cancel := context.WithCancel(t.Context())
			cancel()
			l.Close(ctx)
		})
	}
}

func heap() uint64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}
