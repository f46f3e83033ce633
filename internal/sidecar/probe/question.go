package probe

import (
	"context"
	"sync"
)

// A question is put once for all callers that ask at a time. It is withdrawn when none
// of them waits any more.
type question struct {
	put func(context.Context) error

	mu   sync.Mutex
	open *round // guarded by mu; nil while no caller asks
}

// A round is one time that the question is put.
type round struct {
	waiting  int // guarded by the question's mu
	withdraw context.CancelFunc
	answered chan struct{} // closed when err is set
	err      error
}

// ask returns the answer of the round that is open, or opens one.
func (q *question) ask(ctx context.Context) error {
	r := q.join(ctx)
	select {
	case <-r.answered:
	case <-ctx.Done():
	}
	q.leave(r)
	select {
	case <-r.answered:
		return r.err
	default:
		return context.Cause(ctx)
	}
}

func (q *question) join(ctx context.Context) *round {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.open == nil {
		asking, withdraw := context.WithCancel(context.WithoutCancel(ctx))
		r := &round{withdraw: withdraw, answered: make(chan struct{})}
		q.open = r
		go func() {
			r.err = q.put(asking)
			q.close(r)
			close(r.answered)
		}()
	}
	q.open.waiting++
	return q.open
}

// leave withdraws the question when no caller is left that waits. A later caller must
// not get the answer to a withdrawn question.
func (q *question) leave(r *round) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if r.waiting--; r.waiting > 0 {
		return
	}
	r.withdraw()
	if q.open == r {
		q.open = nil
	}
}

// close ends the round: a later caller asks again.
func (q *question) close(r *round) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.open == r {
		q.open = nil
	}
}
