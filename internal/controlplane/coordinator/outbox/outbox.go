package outbox

import (
	"context"
	"sync"
)

// A Box holds messages that wait, in their order. It has a goroutine only while some do, and sends
// one at a time. It is safe for concurrent use.
type Box[M any] struct {
	most int // that may wait

	mu      sync.Mutex
	waiting []M
	send    func(M) bool  // nil before Open
	sending bool          // a goroutine does
	over    bool          // nothing is sent any more
	room    chan struct{} // closed when there is room again; nil while there is, or nobody asked
}

// New returns a box in which that many messages may wait.
func New[M any](most int) *Box[M] { return &Box[M]{most: most} }

// Open has messages be sent, those that wait and those to come, until send returns false. From
// then on all are dropped. Call it once.
func (b *Box[M]) Open(send func(M) bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.send = send
	b.begin()
}

// Push puts a message into the box, and reports false when there is no room for it.
func (b *Box[M]) Push(m M) bool {
	ok, _ := b.put(m)
	return ok
}

// Put puts a message into the box as soon as there is room, and reports false when ctx is done
// before.
func (b *Box[M]) Put(ctx context.Context, m M) bool {
	for {
		ok, room := b.put(m)
		if ok {
			return true
		}
		select {
		case <-room:
		case <-ctx.Done():
			return false
		}
	}
}

// put does so if there is room. Otherwise it returns what is closed when there is.
func (b *Box[M]) put(m M) (ok bool, room <-chan struct{}) {
	b.mu.Lock()
	defer b.mu.Unlock()
	switch {
	case b.over:
		return true, nil
	case len(b.waiting) < b.most:
		b.waiting = append(b.waiting, m)
		b.begin()
		return true, nil
	case b.room == nil:
		b.room = make(chan struct{})
	}
	return false, b.room
}

// begin sends in a goroutine, if there is something to send. The lock is held.
func (b *Box[M]) begin() {
	if b.send != nil && !b.sending && len(b.waiting) > 0 {
		b.sending = true
		go b.run()
	}
}

// run sends until nothing waits, or nothing is sent any more.
func (b *Box[M]) run() {
	b.mu.Lock()
	defer b.mu.Unlock()
	for len(b.waiting) > 0 {
		m := b.take()
		b.mu.Unlock()
		more := b.send(m)
		b.mu.Lock()
		if !more {
			b.over, b.waiting = true, nil
			b.hasRoom()
		}
	}
	b.sending = false
}

// Next takes the next message out of a box that is not open, and reports false when none waits.
func (b *Box[M]) Next() (m M, ok bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(b.waiting) == 0 {
		return m, false
	}
	return b.take(), true
}

// take takes out the first message. The lock is held.
func (b *Box[M]) take() M {
	m := b.waiting[0]
	b.waiting = b.waiting[1:]
	if len(b.waiting) == 0 {
		b.waiting = nil
	}
	b.hasRoom()
	return m
}

// hasRoom lets those go on that wait for room. The lock is held.
func (b *Box[M]) hasRoom() {
	if b.room != nil {
		close(b.room)
		b.room = nil
	}
}
