package twotier

import (
	"context"
	"time"

	"github.com/weir-dev/weir/pkg/limiter"
)

// strict decides one request by one store call.
func (k *Key) strict(ctx context.Context, cfg *Config, cost int64) (Decision, error) {
	k.mu.Lock()
	now := k.limiter.clock.now()
	if k.isAlone(now) {
		defer k.mu.Unlock()
		return k.admitAlone(cfg, cost, now), nil
	}
	k.mu.Unlock()

	if k.limiter.isClosed() {
		return k.limiter.refused(cfg), nil
	}
	// take returns a grant only while it can be used, which is checked after the
	// wait for it.
	r, err := k.take(ctx, cfg, limiter.Command{Op: limiter.Take, Min: cost, Want: cost})
	if err != nil {
		if ctx.Err() != nil {
			return Decision{}, ctx.Err()
		}
		return k.failed(cfg, cost, err)
	}
	if d, alone := k.overtaken(cfg, cost, r); alone {
		return d, nil
	}
	v := k.limiter.viewOf(cfg, &r, &noView)
	d := Decision{
		Allowed:    r.Granted == cost,
		Source:     FromStore,
		Reason:     r.Reason,
		Limit:      v.limit,
		Remaining:  r.Remaining,
		ResetAfter: time.Duration(max(0, v.resets-r.received)),
		RetryAfter: time.Duration(nanos(r.RetryAfter)),
		Windows:    v.windows,
	}
	if d.Allowed {
		d.key, d.cost = k, cost
	}
	return d, nil
}

// overtaken decides the request on the local share when another request began a
// window on it while the store answered this one. What the store granted goes
// back.
func (k *Key) overtaken(cfg *Config, cost int64, r reply) (Decision, bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	now := k.limiter.clock.now()
	if !k.isAlone(now) {
		return Decision{}, false
	}
	k.forgo(r)
	return k.admitAlone(cfg, cost, now), true
}
