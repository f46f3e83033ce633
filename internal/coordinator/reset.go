package coordinator

import (
	"context"
	"errors"

	"github.com/weir-dev/weir/pkg/limiter"
	"github.com/weir-dev/weir/pkg/store"
)

// Reset sets all counters of a limit back in this controller's store, or the one of hash
// when it is not nil, and returns when that was, on the store's clock. After an error some
// may be set back.
func (c *Coordinator) Reset(ctx context.Context, scope store.Scope, hash *string) (limiter.Instant, error) {
	t := c.present.Load()
	if t == nil {
		return 0, errors.New("this controller does not lead")
	}
	if _, err := t.store.Reset(ctx, scope, hash); err != nil {
		return 0, err
	}
	at := t.clock.Now()
	if !t.covers(at) {
		return 0, unavailable("term %d may have ended", t.number)
	}
	return at, nil
}
