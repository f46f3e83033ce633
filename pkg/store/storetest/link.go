package storetest

import (
	"bytes"
	"io"
	"net"
	"sync"
	"sync/atomic"
	"testing"
)

// A Link is a way to a server on which a reply can get lost.
type Link struct {
	// Addr is the address to dial instead of the server's.
	Addr string

	server string
	lose   atomic.Pointer[string] // what the request holds whose reply gets lost
}

// NewLink opens a link to a server until the test ends.
func NewLink(t *testing.T, server string) *Link {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	l := &Link{Addr: listener.Addr().String(), server: server}
	var open sync.WaitGroup
	open.Go(func() {
		for {
			client, err := listener.Accept()
			if err != nil {
				return // the test is over
			}
			open.Go(func() { l.serve(client) })
		}
	})
	t.Cleanup(open.Wait)
	t.Cleanup(func() { _ = listener.Close() })
	return l
}

// LoseReply loses the reply to the next request that holds the given text, any
// request when it is empty: the server gets the request, then the connection ends.
func (l *Link) LoseReply(holding string) { l.lose.Store(&holding) }

// loses reports whether the reply to a request gets lost, for one request.
func (l *Link) loses(request []byte) bool {
	holding := l.lose.Load()
	return holding != nil && bytes.Contains(request, []byte(*holding)) && l.lose.CompareAndSwap(holding, nil)
}

// serve carries one connection until a reply gets lost or an end closes.
func (l *Link) serve(client net.Conn) {
	defer client.Close()
	upstream, err := net.Dial("tcp", l.server)
	if err != nil {
		return
	}
	defer upstream.Close()
	var losing atomic.Bool
	var replies sync.WaitGroup
	replies.Go(func() { carry(client, upstream, losing.Load) })
	buf := make([]byte, 1<<16)
	for {
		n, err := client.Read(buf)
		if n > 0 && l.loses(buf[:n]) {
			losing.Store(true)
		}
		if _, writeErr := upstream.Write(buf[:n]); err != nil || writeErr != nil {
			break
		}
	}
	_ = upstream.Close()
	replies.Wait()
}

// carry copies replies until one is to be lost, then ends the connection.
func carry(client io.WriteCloser, upstream io.Reader, losing func() bool) {
	defer client.Close()
	buf := make([]byte, 1<<16)
	for {
		n, err := upstream.Read(buf)
		if err != nil || losing() {
			return
		}
		if _, err := client.Write(buf[:n]); err != nil {
			return
		}
	}
}
