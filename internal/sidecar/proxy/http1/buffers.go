package http1

import (
	"sync"

	"github.com/weir-dev/weir/internal/sidecar/membudget"
)

// A buffers lends the buffers that bodies are copied through. They are small where memory is
// short: what a request has taken includes a small one.
type buffers struct {
	memory               *membudget.Budget // nil: all are large
	large, middle, small sync.Pool
}

const (
	largeBytes  = 72 << 10 // for a head and 64 KiB behind it, which then are one write
	middleBytes = 32 << 10 // for tunnels, which keep theirs for long
	smallBytes  = 4 << 10
)

func (b *buffers) get() []byte {
	if !b.spare(largeBytes) {
		return b.least()
	}
	if buffer, ok := b.large.Get().(*[largeBytes]byte); ok {
		return buffer[:]
	}
	return make([]byte, largeBytes)
}

// forTunnel returns a buffer for one way of a tunnel.
func (b *buffers) forTunnel() []byte {
	if !b.spare(middleBytes) {
		return b.least()
	}
	if buffer, ok := b.middle.Get().(*[middleBytes]byte); ok {
		return buffer[:]
	}
	return make([]byte, middleBytes)
}

func (b *buffers) least() []byte {
	if buffer, ok := b.small.Get().(*[smallBytes]byte); ok {
		return buffer[:]
	}
	return make([]byte, smallBytes)
}

func (b *buffers) spare(n int64) bool {
	return b.memory == nil || b.memory.TakeSpare(membudget.Bodies, n)
}

func (b *buffers) put(buffer []byte) {
	switch len(buffer) {
	case smallBytes:
		b.small.Put((*[smallBytes]byte)(buffer))
		return
	case middleBytes:
		b.middle.Put((*[middleBytes]byte)(buffer))
	default:
		b.large.Put((*[largeBytes]byte)(buffer))
	}
	if b.memory != nil {
		b.memory.Give(membudget.Bodies, int64(len(buffer)))
	}
}

// wideBody is how much of a body has to be left for the kernel to keep more of it.
const wideBody = 24 << 10

// widen has the kernel keep more of what the client sends, for a large body, while memory is free. It
// stays so: a request over such a connection takes memory for it, or has the kernel keep less again.
func (t *transfer) widen() {
	c, memory := t.conn, t.conn.server.cfg.Memory
	if !t.width {
		t.width = memory == nil || memory.TakeRoom(membudget.Bodies, membudget.WideBytes)
	}
	if t.width != c.wide {
		c.wide = t.width && membudget.WidenAccepted(c.Conn, true) == nil
		if !c.wide {
			_ = membudget.WidenAccepted(c.Conn, false) // one that fails is closed anyway
		}
	}
}

// narrow gives back what widen has taken.
func (t *transfer) narrow() {
	if memory := t.conn.server.cfg.Memory; t.width && memory != nil {
		memory.Give(membudget.Bodies, membudget.WideBytes)
	}
	t.width = false
}
