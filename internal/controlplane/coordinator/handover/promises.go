package handover

import (
	"context"
	"sync"
	"sync/atomic"

	"github.com/weir-dev/weir/pkg/limiter"
)

// Promises are those that a leader waits for before it stops: a holder that has promised begins no
// window by itself that the leader may have served, however late it hears that the leader stopped.
// The zero value asks for none. H is a holder. Its methods are safe for concurrent use.
type Promises[H comparable] struct {
	until atomic.Int64 // an instant: windows that begin earlier are promised; 0 before Ask

	mu   sync.Mutex
	left map[H]struct{} // holders that are waited for
	none chan struct{}  // closed when nobody is left; nil while Wait does not wait
}

// Ask has each holder that joins from now on promise to begin no window by itself that begins before the
// instant until. The leader serves nothing from that instant on. It may ask again for more; promises of
// before do not count then.
func (p *Promises[H]) Ask(until limiter.Instant) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.left = map[H]struct{}{}
	p.until.Store(int64(until))
}

// Join has Wait wait for the holder, and returns the instant until which it has to promise; 0 for nothing.
func (p *Promises[H]) Join(h H) (until limiter.Instant) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if until = limiter.Instant(p.until.Load()); until != 0 {
		p.left[h] = struct{}{}
	}
	return until
}

// Make notes what the holder has promised.
func (p *Promises[H]) Make(h H, until limiter.Instant) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if int64(until) >= p.until.Load() {
		p.drop(h)
	}
}

// Leave notes that the holder is gone.
func (p *Promises[H]) Leave(h H) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.drop(h)
}

func (p *Promises[H]) drop(h H) {
	if delete(p.left, h); len(p.left) == 0 && p.none != nil {
		close(p.none)
		p.none = nil
	}
}

// Wait blocks until all have promised or left that have joined, or ctx is done. It returns how many
// have not. Only one caller waits at a time.
func (p *Promises[H]) Wait(ctx context.Context) (left int) {
	p.mu.Lock()
	if len(p.left) == 0 {
		p.mu.Unlock()
		return 0
	}
	none := make(chan struct{})
	p.none = none
	p.mu.Unlock()
	select {
	case <-none:
		return 0
	case <-ctx.Done():
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.none = nil
	return len(p.left)
}

// Over reports whether nothing is to be served at the instant.
func (p *Promises[H]) Over(at limiter.Instant) bool {
	until := p.until.Load()
	return until != 0 && int64(at) >= until
}
