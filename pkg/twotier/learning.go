package twotier

import (
	"time"

	"github.com/weir-dev/weir/pkg/limiter"
	"github.com/weir-dev/weir/pkg/twotier/account"
)

// A learning is a refusal by which the store said that it cannot know what it granted
// before. It is one for all keys of the limit: they share the store's memory.
type learning struct {
	reason limiter.Reason
	until  int64 // local instant
}

// noteLearning notes the answer to a take.
func (l *Limiter) noteLearning(r account.Reply) {
	switch r.Reason {
	case limiter.Amnesia, limiter.ClockBehind:
		l.learning.Store(&learning{reason: r.Reason, until: r.Received + account.Nanos(r.RetryAfter)})
	case limiter.Granted:
		if l.learning.Load() != nil { // mostly nothing is written
			l.learning.Store(nil)
		}
	case limiter.Exhausted, limiter.TooLarge, limiter.StaleGeneration, limiter.Forfeited:
		// They say nothing of what the store remembers.
	}
}

// isLearning returns for how long the store goes on so, and why.
func (l *Limiter) isLearning() (limiter.Reason, time.Duration) {
	v := l.learning.Load()
	if v == nil {
		return limiter.Granted, 0
	}
	left := time.Duration(v.until - l.clock.now())
	if left <= 0 {
		return limiter.Granted, 0
	}
	return v.reason, left
}
