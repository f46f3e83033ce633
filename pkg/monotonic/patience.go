package monotonic

import (
	"context"
	"errors"
	"runtime"
	"time"
)

// hops is the number of parts in which Within waits, one after the other.
const hops = 4

// Within returns a copy of ctx that ends after d, or later when this process gets less of a
// processor than it needs: when it is stopped, when its container has used up its share, or
// when very many goroutines are ready to run. The function that waits for each fourth of d
// then goes behind all of these, as does the goroutine that reads a reply. So a reply that
// has arrived is read before the call is given up, and a process that is starved does not
// take its peer for lost.
//
// Deadline returns the instant d from now all the same, for clients that give a connection a
// deadline. cancel releases what the context holds, and is to be called.
func Within(ctx context.Context, d time.Duration) (_ context.Context, cancel context.CancelFunc) {
	if s, ok := ctx.(*shared); ok {
		return s.within(d)
	}
	p := &patience{deadline: time.Now().Add(d), part: max(d/hops, 1), left: hops}
	p.Context, p.end = context.WithCancelCause(ctx)
	p.timer = time.AfterFunc(time.Hour, p.hop) // reset below: hop reads p.timer
	p.timer.Reset(p.part)
	return p, func() {
		p.timer.Stop()
		p.end(context.Canceled)
	}
}

// A patience is a context of Within.
type patience struct {
	context.Context //nolint:containedctx // it is one
	end             context.CancelCauseFunc
	deadline        time.Time
	part            time.Duration
	left            int // parts; only hop uses it, which runs once at a time
	timer           *time.Timer
}

// hop ends a part.
func (p *patience) hop() {
	runtime.Gosched()
	if p.left--; p.left > 0 && p.Context.Err() == nil {
		p.timer.Reset(p.part)
		return
	}
	p.end(context.DeadlineExceeded)
}

// Deadline implements context.Context.
func (p *patience) Deadline() (time.Time, bool) {
	if at, ok := p.Context.Deadline(); ok && at.Before(p.deadline) {
		return at, true
	}
	return p.deadline, true
}

// Err implements context.Context.
func (p *patience) Err() error {
	err := p.Context.Err()
	if err != nil && errors.Is(context.Cause(p.Context), context.DeadlineExceeded) {
		return context.DeadlineExceeded
	}
	return err
}
