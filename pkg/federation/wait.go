package federation

import "github.com/weir-dev/weir/pkg/limiter"

// A need is what requests wait for that the next order may bring.
type need struct {
	waiters     int
	least, want int64 // the smallest of the one, the sum of the other
	settled     bool
	done        chan struct{} // closed when settled
}

func newNeed() *need { return &need{done: make(chan struct{})} }

// settle has all waiters look again.
func (r *Region) settle() {
	close(r.need.done)
	r.need.settled = true
	r.looking += r.need.waiters
	r.need = newNeed()
}

// looked notes that a waiter that looked at what an order brought needs no more.
func (r *Region) looked(looks bool) {
	if !looks {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.looking--
	r.hurry(r.clock.Now())
}

// want has the request wait for the next order, unless that would be in vain.
func (r *Region) want(q *request, looks bool) (*need, limiter.Result, error) {
	defer r.looked(looks)
	r.mu.Lock()
	defer r.mu.Unlock()
	now := r.clock.Now()
	d := r.link.dry
	switch {
	case r.closed:
		return nil, limiter.Result{}, r.unavailable(ErrClosed)
	case !r.link.answered && r.link.cause != nil:
		return nil, limiter.Result{}, r.unavailable(r.link.cause)
	case r.link.cause != nil:
		return nil, r.refuse(q, now, r.link.retryAt), nil
	case q.Min > r.config.Params.Limit:
		return nil, r.refuse(q, now, past), nil
	case now < d.until && q.Min >= d.least && !r.closing(now):
		return nil, r.refuse(q, now, d.ask), nil
	}
	n := r.need
	if n.waiters == 0 || q.Min < n.least {
		n.least = q.Min
	}
	n.waiters++
	n.want = min(n.want+q.Want, limiter.MaxLimit)
	r.hurry(now)
	return n, limiter.Result{}, nil
}

// closing reports whether the next window begins before another answer could come.
func (r *Region) closing(now int64) bool {
	return r.link.estimate.known && float64(r.begins(now)-now) < 2*r.link.trip.most()
}

// leave ends the wait of a request that has waited for long enough.
func (r *Region) leave(q *request, n *need) limiter.Result {
	r.mu.Lock()
	defer r.mu.Unlock()
	now := r.clock.Now()
	if n.settled {
		r.looking--
		r.hurry(now)
	} else {
		n.waiters--
		n.want = max(0, n.want-q.Want)
	}
	return r.refuse(q, now, now+int64(firstRetry))
}
