package federation

import (
	"context"
	"sync"
	"time"

	"github.com/weir-dev/weir/pkg/federation/escrow"
	"github.com/weir-dev/weir/pkg/limiter"
	"github.com/weir-dev/weir/pkg/monotonic"
)

// own is the escrow of one region of one process, on its clock.
type own struct {
	clock *monotonic.Clock
	start int64           // instant when its memory began,
	began limiter.Instant // and what time it was then

	mu    sync.Mutex
	state escrow.State // guarded by mu
}

func newOwn(clock *monotonic.Clock) *own {
	return &own{clock: clock, start: clock.Now(), began: limiter.Instant(time.Now().UnixMicro())}
}

// Apply implements Escrow. It does not fail.
func (o *own) Apply(_ context.Context, _ string, c escrow.Command) (r escrow.Result, _ error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	c.Since = o.began
	o.state, r = o.state.Step(o.began.Add(micros(o.clock.Now()-o.start)), c)
	return r, nil
}
