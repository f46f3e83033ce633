package coordinator

import (
	"context"
	"time"
)

const (
	// messageRate is how many messages a second are read from a stream on the long run, and
	// at once after a pause of a second. A lease for each request of a pod is fewer.
	messageRate = 20_000
	// paceBreak is how long a stream that sends more is not read at least, so that the wait
	// is for many messages.
	paceBreak = 50 * time.Millisecond
)

// A pace spreads the messages of a stream. What it does not let through yet waits at the
// sender, by the flow control of the stream (the generic cell rate algorithm, ITU-T I.371).
type pace struct {
	free time.Time // when it is as good as new
}

// next returns how long a message waits that comes at an instant, 0 for not at all.
func (p *pace) next(now time.Time) time.Duration {
	p.free = latest(p.free, now).Add(time.Second / messageRate)
	if ahead := p.free.Sub(now) - time.Second; ahead > 0 {
		return ahead + paceBreak
	}
	return 0
}

// rest waits before a message of the session is handled, if its pod sends too many.
func (t *term) rest(ctx context.Context, s *session, p *pace) {
	wait := p.next(time.Now())
	if wait == 0 {
		return
	}
	t.turned.away(boundMessages, "pod", s.Namespace+"/"+s.Pod)
	over := time.NewTimer(wait)
	defer over.Stop()
	select {
	case <-over.C:
	case <-ctx.Done():
	}
}
