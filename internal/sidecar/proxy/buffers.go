package proxy

import (
	"sync"

	"github.com/weir-dev/weir/internal/sidecar/membudget"
)

// A bufferPool lends the buffers that bodies are copied through. They are small where memory is
// short: what a request has taken includes a small one.
type bufferPool struct {
	memory       *membudget.Budget // nil: all are large
	large, small sync.Pool
}

const (
	bufferBytes = 32 << 10
	smallBytes  = 4 << 10
)

// Get implements httputil.BufferPool.
func (b *bufferPool) Get() []byte {
	if b.memory != nil && !b.memory.TakeSpare(membudget.Bodies, bufferBytes) {
		if buffer, ok := b.small.Get().(*[smallBytes]byte); ok {
			return buffer[:]
		}
		return make([]byte, smallBytes)
	}
	if buffer, ok := b.large.Get().(*[bufferBytes]byte); ok {
		return buffer[:]
	}
	return make([]byte, bufferBytes)
}

// Put implements httputil.BufferPool.
func (b *bufferPool) Put(buffer []byte) {
	if len(buffer) == smallBytes {
		b.small.Put((*[smallBytes]byte)(buffer))
		return
	}
	b.large.Put((*[bufferBytes]byte)(buffer))
	if b.memory != nil {
		b.memory.Give(membudget.Bodies, bufferBytes)
	}
}
