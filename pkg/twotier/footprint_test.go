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

// TestAKeyTakesWhatIsTakenForIt measures what a limiter needs for each key that it has
// credits for, or admits without the store. Only the part is kept of a value that is a part of a long text.
func TestAKeyTakesWhatIsTakenForIt(t *testing.T) {
	const n, length, long = 15_000, 32, 1 << 10
	for name, tc := range map[string]struct {
		size SizeType
		s    Store
		most int64
	}{
		"fixed":             {Fixed, granter{}, 160 + length},
		"adaptive":          {Adaptive, granter{}, 160 + length},
		"without the store": {Fixed, away{}, keyBytes + length + extraBytes},
	} {
		t.Run(name, func(t *testing.T) {
			m := &few{bytes: 1 << 40}
			cfg := perSecond(1000, 10)
			cfg.Params.Rates[0].Window = limiter.MaxWindow
			cfg.Size.Type, cfg.MaxKeys, cfg.Memory, cfg.OnUnavailable = tc.size, n, m, LocalShare
			l := mustNew(cfg, newBreaker(tc.s, newClock()))
			before := heap()
			for i := range n {
				text := fmt.Sprintf("%0*d", long, i)
				if d, err := l.Acquire(t.Context(), Request{Value: text[long-length:], Cost: 1}); err != nil || !d.Allowed {
					t.Fatalf("got %+v, %v", d, err)
				}
			}
			got, taken := int64(heap()-before)/n, m.used()/n
			t.Logf("%d bytes a key, %d taken", got, taken)
			if got > tc.most || got > taken {
				t.Errorf("%d bytes a key, want at most %d, and no more than %d which are taken", got, tc.most, taken)
			}
			ctx, cancel := context.WithCancel(t.Context())
			cancel()
			l.Close(ctx)
		})
	}
}

// away is never there.
type away struct{}

func (away) Apply(context.Context, store.Key, limiter.Params, limiter.Command) (limiter.Result, error) {
	return limiter.Result{}, errDown
}

func heap() uint64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}
