package pools

import (
	"context"
	"errors"
	"log/slog"
	"sync"

	"github.com/weir-dev/weir/pkg/concurrency"
	"github.com/weir-dev/weir/pkg/concurrency/pool"
	"github.com/weir-dev/weir/pkg/policy"
)

// outageBeats is how many commands fail in a row in an outage. Fewer may have been lost,
// or have come while a connection was made.
const outageBeats = 3

// Logged returns coordinators that log when one does not answer and when it does again,
// once for each outage.
func Logged(of Coordinators, log *slog.Logger) Coordinators { return logged{of, log} }

type logged struct {
	Coordinators
	log *slog.Logger
}

// Coordinator implements Coordinators.
func (l logged) Coordinator(s policy.Store) (concurrency.Coordinator, error) {
	c, err := l.Coordinators.Coordinator(s)
	if err != nil {
		return nil, err
	}
	return &observed{Coordinator: c, log: l.log}, nil
}

// An observed coordinator is that of one guard.
type observed struct {
	concurrency.Coordinator
	log *slog.Logger

	mu       sync.Mutex // guards the rest
	heard    int64      // the latest command whose outcome is known
	failures int        // in a row
}

// Apply implements concurrency.Coordinator.
func (o *observed) Apply(ctx context.Context, key pool.Key, p pool.Params, c pool.Command) (pool.Grant, error) {
	g, err := o.Coordinator.Apply(ctx, key, p, c)
	if errors.Is(ctx.Err(), context.Canceled) {
		return g, err // no caller waits for it
	}
	switch began, ended := o.note(c.Seq, err); {
	case began:
		o.log.Warn("the coordinator does not answer", "pool", key.String(), "error", err)
	case ended:
		o.log.Info("the coordinator answers again", "pool", key.String())
	}
	return g, err
}

// note reports whether an outage began or ended by what became of a command.
func (o *observed) note(seq int64, err error) (began, ended bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if seq < o.heard {
		return false, false
	}
	o.heard = seq
	if err != nil {
		o.failures++
		return o.failures == outageBeats, false
	}
	ended = o.failures >= outageBeats
	o.failures = 0
	return false, ended
}
