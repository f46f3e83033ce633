package monotonic

import (
	"context"
	"sync"
	"time"
)

// sharedPart is in which part of their time calls begin that share a context.
const sharedPart = 16

// Share returns a copy of ctx for calls that are many: Within returns the same context for those
// that have the same time and begin in the first sixteenth of it. A call then ends up to a
// sixteenth early, and costs neither a timer nor memory of its own. cancel of Within is to be called
// once.
func Share(ctx context.Context) context.Context { return &shared{Context: ctx} }

// shared is a context of Share.
type shared struct {
	context.Context //nolint:containedctx // it is one

	mu     sync.Mutex
	latest *joint // that calls may join; guarded by mu
}

// A joint is a context of calls that began at about the same time.
type joint struct {
	ctx    context.Context //nolint:containedctx // of the calls
	cancel context.CancelFunc
	lasts  time.Duration
	until  time.Time // when calls may join it no more
	calls  int       // under way; guarded by the lock of the shared
	leave  context.CancelFunc
}

func (s *shared) within(d time.Duration) (context.Context, context.CancelFunc) {
	now := time.Now()
	s.mu.Lock()
	defer s.mu.Unlock()
	j := s.latest
	if j == nil || j.lasts != d || !now.Before(j.until) {
		if j != nil && j.calls == 0 {
			j.cancel()
		}
		j = &joint{lasts: d, until: now.Add(d / sharedPart)}
		j.ctx, j.cancel = Within(s.Context, d)
		j.leave = func() { s.leave(j) }
		s.latest = j
	}
	j.calls++
	return j.ctx, j.leave
}

// leave ends a call. The latest context is kept for others, and ends by itself.
func (s *shared) leave(j *joint) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if j.calls--; j.calls == 0 && j != s.latest {
		j.cancel()
	}
}
