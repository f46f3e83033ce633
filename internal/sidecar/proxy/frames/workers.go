package frames

import (
	"context"
	"sync"
	"sync/atomic"
)

// keptWorkers is how many goroutines answer one call after another: a new one for each would
// spend a tenth of its time on making its stack larger. Calls that find none idle get one of
// their own.
const keptWorkers = 32

// Workers answer calls that have to wait.
type workers struct {
	ctx     context.Context //nolint:containedctx // the life of the server
	calls   chan *stream
	kept    atomic.Int64
	running sync.WaitGroup
}

func newWorkers(ctx context.Context) workers { return workers{ctx: ctx, calls: make(chan *stream)} }

// run has a call answered.
func (w *workers) run(s *stream) {
	select {
	case w.calls <- s:
	default:
		w.running.Go(func() { w.work(s) })
	}
}

func (w *workers) work(s *stream) {
	s.wait()
	if w.kept.Add(1) > keptWorkers {
		w.kept.Add(-1)
		return
	}
	for {
		select {
		case s = <-w.calls:
			s.wait()
		case <-w.ctx.Done():
			return
		}
	}
}
