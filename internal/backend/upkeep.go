package backend

import (
	"context"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/weir-dev/weir/pkg/limiter"
)

// The mean times between two refreshes of a store: while it is in use, and while nobody
// asks it. Each one waits up to half as long less or more, so that a fleet does not call
// in step.
const (
	refreshEvery = 2 * time.Second
	refreshIdle  = 30 * time.Second
)

// upkept is a store that has to be refreshed while no command reaches it.
type upkept interface {
	Refresh(ctx context.Context) error
}

// keepUp refreshes s at once and then until ctx is done, as often as u wants. A sidecar
// remembers refusals and may leave its store alone for the rest of a window. Without this
// a store that was new, restarted or flushed meanwhile would begin to remember in the
// next window only, and not serve that one.
//
// A refresh that fails changes nothing: the next one tries again, and only requests say
// whether the store is available.
func keepUp(ctx context.Context, s upkept, u *usage) {
	for {
		_ = s.Refresh(ctx)
		if !u.await(ctx) {
			return
		}
	}
}

// A usage is how a store was asked lately.
type usage struct {
	asked chan struct{} // holds one when the store was asked

	mu       sync.Mutex
	remember time.Time // until when the sidecar may remember a refusal
}

func newUsage() *usage { return &usage{asked: make(chan struct{}, 1)} }

// note records the store's answer. A caller that was granted less than it wanted, or
// the last units, might not ask again before more can be had.
func (u *usage) note(c limiter.Command, r limiter.Result) {
	if c.Op == limiter.Take && (r.Granted < c.Want || r.Remaining == 0) {
		left := time.Duration(max(r.RetryAfter, r.ExpiresIn, r.ResetAfter)) * time.Microsecond
		u.mu.Lock()
		if until := time.Now().Add(left); until.After(u.remember) {
			u.remember = until
		}
		u.mu.Unlock()
	}
	select {
	case u.asked <- struct{}{}:
	default:
	}
}

// remembers reports whether a refusal may be remembered.
func (u *usage) remembers() bool {
	u.mu.Lock()
	defer u.mu.Unlock()
	return time.Now().Before(u.remember)
}

// await waits until the next refresh is due, and reports false when ctx was done before.
func (u *usage) await(ctx context.Context) bool {
	if !u.remembers() {
		idle := time.NewTimer(around(refreshIdle))
		defer idle.Stop()
		select {
		case <-u.asked:
		case <-idle.C:
			return true
		case <-ctx.Done():
			return false
		}
	}
	select {
	case <-time.After(around(refreshEvery)):
		return true
	case <-ctx.Done():
		return false
	}
}

func around(mean time.Duration) time.Duration { return mean/2 + rand.N(mean) }
