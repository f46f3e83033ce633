package coordinator

import (
	"context"
	"time"

	"golang.org/x/time/rate"

	"github.com/weir-dev/weir/internal/coordinator/connlimit"
)

const (
	// messageRate is how many messages a second are read from a stream on the long run, and
	// at once after a pause of a second. A lease for each request of a pod is fewer.
	messageRate = 20_000
	// paceBreak is how long a stream that sends more is not read at least, so that the wait
	// is for many messages.
	paceBreak = 50 * time.Millisecond
)

// newPace returns what spreads the messages of a stream. What it does not let through yet
// waits at the sender, by the flow control of the stream.
func newPace() *rate.Limiter { return rate.NewLimiter(messageRate, messageRate) }

// rest waits before a message of the session is handled, if its pod sends too many.
func (t *term) rest(ctx context.Context, s *session, pace *rate.Limiter) {
	now := time.Now()
	wait := pace.ReserveN(now, 1).DelayFrom(now)
	if wait == 0 {
		return
	}
	t.refusals.Count(connlimit.BoundMessages, "pod", s.Namespace+"/"+s.Pod)
	over := time.NewTimer(wait + paceBreak)
	defer over.Stop()
	select {
	case <-over.C:
	case <-ctx.Done():
	}
}
