package postgres_test

import (
	"io"
	"net"
	"sync"
	"sync/atomic"
	"testing"
)

// A link is a way to a server on which replies can get lost.
type link struct {
	addr      string
	loseReply atomic.Bool // the next one: its connection ends instead
}

func newLink(t *testing.T, server string) *link {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	l := &link{addr: listener.Addr().String()}
	var open sync.WaitGroup
	open.Go(func() {
		for {
			client, err := listener.Accept()
			if err != nil {
				return // the test is over
			}
			open.Go(func() { l.serve(client, server) })
		}
	})
	t.Cleanup(open.Wait)
	t.Cleanup(func() { _ = listener.Close() })
	return l
}

// serve carries one connection until a reply gets lost or an end closes.
func (l *link) serve(client net.Conn, server string) {
	defer client.Close()
	upstream, err := net.Dial("tcp", server)
	if err != nil {
		return
	}
	defer upstream.Close()
	var replies sync.WaitGroup
	replies.Go(func() { l.carry(client, upstream) })
	_, _ = io.Copy(upstream, client) // ends with the connection
	_ = upstream.Close()
	replies.Wait()
}

// carry copies replies until one is to be lost, then ends the connection.
func (l *link) carry(client io.WriteCloser, upstream io.Reader) {
	defer client.Close()
	buf := make([]byte, 1<<16)
	for {
		n, err := upstream.Read(buf)
		if err != nil || l.loseReply.CompareAndSwap(true, false) {
			return
		}
		if _, err := client.Write(buf[:n]); err != nil {
			return
		}
	}
}
