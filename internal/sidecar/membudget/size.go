package membudget

import "math"

const (
	// own is what the process takes for itself beside its clients: policies, engines, the
	// stream to the controller, metrics.
	own = 8 << 20
	// Three quarters of the heap may be in use, so that the collector has some to work with.
	usedOf, usedIn = 3, 4
	// least is the size where the container has less memory than the process needs.
	least = 2 << 20
	// usualHeap is the heap of a container of 1 GiB, see the program. It counts where the heap
	// has no limit.
	usualHeap = 1 << 30 / 20 * 13
)

// SizeIn returns the size of the budget in a heap of that many bytes, as debug.SetMemoryLimit
// has them.
func SizeIn(heap int64) int64 {
	if heap == math.MaxInt64 {
		heap = usualHeap
	}
	return max(least, heap/usedIn*usedOf-own)
}

// These are the bytes of memory that each of them takes. docs/proxy.md has the table.
const (
	ConnectionBytes = 10 << 10  // of HTTP/1.1, with its goroutine, but without what a request needs
	ServerBytes     = 24 << 10  // of one that net/http serves, with its buffers
	ScratchBytes    = 8 << 10   // more, for a head that has not come to its end, with its first 4 KiB
	ParkedBytes     = 4 << 10   // of one that is idle for longer than a second, and waits without a goroutine
	WaitingBytes    = 8 << 10   // of one that waits with a goroutine
	SocketBytes     = 4 << 10   // of the kernel's, while nothing is sent
	HTTP2Bytes      = 38 << 10  // more, for a connection of HTTP/2
	RequestBytes    = 110 << 10 // of HTTP/1.1, with its head, a connection to the app, a small buffer, and what the kernel keeps
	StreamBytes     = 60 << 10  // a request of HTTP/2, with what is received of its answer
	CallBytes       = 16 << 10  // a call of Envoy's rate limit service, with the first 4 KiB of its message
	UploadBytes     = 32 << 10  // more, for a body over HTTP/1.1
	TunnelBytes     = 64 << 10  // more, for a WebSocket
	WideBytes       = 64 << 10  // more, for a request over a connection whose client sends large bodies
	RoomyBytes      = 128 << 10 // more, for a request over a roomy connection to the app
	WindowBytes     = 64 << 10  // more, for a body over HTTP/2
	WindowsBytes    = 256 << 10 // at most for all bodies of a connection
	headFree        = 4 << 10   // of a head that is part of its scratch, or stream
	headFactor      = 3         // bytes for each byte beyond
)
