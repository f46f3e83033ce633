package http1

import (
	"net/http"
	"sync/atomic"
	"testing"
	"time"
)

// TestAConnectionThatWaitsHasNoBuffer, though it is not parked: one after the other ask with the same few.
func TestAConnectionThatWaitsHasNoBuffer(t *testing.T) {
	const connections = 64
	var made atomic.Int64
	before := scratches.New
	scratches.New = func() any {
		made.Add(1)
		return before()
	}
	t.Cleanup(func() { scratches.New = before }) // once the server is closed
	w := newWorld(t, 1<<30, say(fine), func(s *Server) { s.rest = time.Hour })
	for range connections {
		c, in := w.dial()
		if status := w.ask(c, in, getRoot); status != http.StatusOK {
			t.Fatalf("got %d", status)
		}
	}
	if n := made.Load(); n > connections/2 { // the race detector has a pool lose some
		t.Errorf("%d connections that wait have %d buffers", connections, n)
	}
}
