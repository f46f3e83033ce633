package fleet

import (
	"context"
	"sync"

	"github.com/weir-dev/weir/internal/fleetpb"
)

// A reply echoes the id of the request that it answers.
type reply interface{ GetId() uint64 }

// replies hands the replies of one kind to the callers that wait for them.
type replies[R reply] struct {
	mu      sync.Mutex
	waiting map[uint64]chan R
}

func newReplies[R reply]() *replies[R] { return &replies[R]{waiting: make(map[uint64]chan R)} }

// answer hands a reply to the caller that waits for it. No caller waits for one that
// came too late, for which it reports false: a lease's grant ends with its window, and a share expires.
func (rs *replies[R]) answer(r R) (inTime bool) {
	rs.mu.Lock()
	defer rs.mu.Unlock()
	waiting, ok := rs.waiting[r.GetId()]
	if ok {
		delete(rs.waiting, r.GetId())
		waiting <- r
	}
	return ok
}

// await returns where the reply with that id will be, and what to call when nobody
// waits for it any more.
func (rs *replies[R]) await(id uint64) (reply <-chan R, forget func()) {
	waiting := make(chan R, 1)
	rs.mu.Lock()
	defer rs.mu.Unlock()
	rs.waiting[id] = waiting
	return waiting, func() {
		rs.mu.Lock()
		defer rs.mu.Unlock()
		delete(rs.waiting, id)
	}
}

// ask queues a request and waits for the reply that echoes its id.
func ask[R reply](ctx context.Context, l *link, queue chan<- *fleetpb.FromHolder, rs *replies[R], id uint64, m *fleetpb.FromHolder) (R, error) {
	var none R
	reply, forget := rs.await(id)
	defer forget()
	if err := l.queue(ctx, queue, m); err != nil {
		return none, err
	}
	select {
	case r := <-reply:
		return r, nil
	case <-l.done:
		return none, errEnded
	case <-ctx.Done():
		return none, ctx.Err()
	}
}
