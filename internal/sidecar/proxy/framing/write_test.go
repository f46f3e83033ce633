package framing

import (
	"errors"
	"io"
	"log"
	"net"
	"net/http"
	"os"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weir-dev/weir/internal/sidecar/membudget"
)

const patience = turns * turn

func unbounded() *membudget.Port { return membudget.New(1 << 40).Port(false) }

func checked(c net.Conn) *Conn {
	s, _ := newSocket(c, unbounded())
	return newConn(s, &park{})
}

// write writes n bytes to a peer that reads as read does, and returns what became of it
// and how long it took.
func write(t *testing.T, n int, read func(peer net.Conn)) (taken int, took time.Duration, err error) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		near, peer := net.Pipe()
		c := checked(near)
		var reading sync.WaitGroup
		reading.Go(func() { read(peer) })
		start := time.Now()
		taken, err = c.Write(make([]byte, n))
		took = time.Since(start)
		reading.Wait()
	})
	return taken, took, err
}

func TestAWriteEndsWhenThePeerReadsNothing(t *testing.T) {
	for name, first := range map[string]int64{"at all": 0, "any more": 1000} {
		t.Run(name, func(t *testing.T) {
			taken, took, err := write(t, 1<<20, func(peer net.Conn) {
				_, _ = io.CopyN(io.Discard, peer, first)
				time.Sleep(time.Hour)
			})
			if !errors.Is(err, os.ErrDeadlineExceeded) || int64(taken) != first {
				t.Errorf("wrote %d bytes and then %v, want %d and a time-out", taken, err, first)
			}
			if most := patience + turn + moving; took < patience || took > most {
				t.Errorf("took %v, want %v to %v", took, patience, most)
			}
		})
	}
}

// TestASlowReaderStays: it takes an hour for what it reads, a byte at a time.
func TestASlowReaderStays(t *testing.T) {
	taken, took, err := write(t, 180, func(peer net.Conn) {
		for range 180 {
			time.Sleep(20 * time.Second)
			_, _ = peer.Read(make([]byte, 1))
		}
	})
	if err != nil || taken != 180 || took != time.Hour {
		t.Errorf("wrote %d bytes in %v and then %v, want 180 in an hour", taken, took, err)
	}
}

// A buffer is a connection that says nothing of room which it has.
type buffer struct {
	net.Conn
	until time.Time
	room  int
}

func (*buffer) RemoteAddr() net.Addr { return nil }

func (b *buffer) SetWriteDeadline(t time.Time) error { b.until = t; return nil }

// Write takes what there is room for, or else waits until its deadline. There is room by
// then.
func (b *buffer) Write(p []byte) (int, error) {
	if n := min(len(p), b.room); n > 0 {
		b.room -= n
		return n, nil
	}
	time.Sleep(time.Until(b.until))
	b.room = 1000
	return 0, os.ErrDeadlineExceeded
}

func TestAWriteThatTimedOutFindsRoom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := checked(&buffer{})
		for range 10 {
			if n, err := c.Write(make([]byte, 1000)); err != nil || n != 1000 {
				t.Fatalf("wrote %d bytes and then %v", n, err)
			}
		}
	})
}

// TestAConnectionMayBeIdleAsLongAsItLikes: what a write may take is not counted from
// the write before.
func TestAConnectionMayBeIdleAsLongAsItLikes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const slow = 25 * time.Second
		near, peer := net.Pipe()
		c := checked(near)
		go func() {
			for err := error(nil); err == nil; _, err = peer.Read(make([]byte, 1)) {
				time.Sleep(slow)
			}
		}()
		for _, pause := range []time.Duration{0, moving / 2, patience, time.Hour} {
			time.Sleep(pause)
			if _, err := c.Write([]byte("x")); err != nil {
				t.Errorf("after %v: %v", pause, err)
			}
		}
		_ = c.Close()
		time.Sleep(slow)
	})
}

// one is a listener of one connection.
type one struct {
	conns  chan net.Conn
	closed chan struct{}
}

func (l one) Accept() (net.Conn, error) {
	select {
	case c := <-l.conns:
		return c, nil
	case <-l.closed:
		return nil, net.ErrClosed
	}
}
func (l one) Close() error { close(l.closed); return nil }
func (one) Addr() net.Addr { return &net.TCPAddr{} }

// TestAClientThatDoesNotReadGivesItsHandlerBack serves an answer without end, as such and
// over a tunnel, with a request before it so that a deadline was set just now.
func TestAClientThatDoesNotReadGivesItsHandlerBack(t *testing.T) {
	for _, path := range []string{"/answer", "/tunnel"} {
		t.Run(path, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				near, client := net.Pipe()
				conns := make(chan net.Conn, 1)
				conns <- near
				ended := make(chan time.Time, 1)
				s := http.Server{ErrorLog: log.New(io.Discard, "", 0), Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
					if r.URL.Path == "/before" {
						return
					}
					to := io.Writer(w)
					if r.URL.Path == "/tunnel" {
						conn, _, err := http.NewResponseController(w).Hijack()
						if err != nil {
							t.Error(err)
							return
						}
						defer conn.Close()
						to = conn
					}
					for {
						if _, err := to.Write(make([]byte, 1<<10)); err != nil {
							ended <- time.Now()
							return
						}
					}
				})}
				go func() { _ = s.Serve(Listen(one{conns, make(chan struct{})}, func() {}, unbounded())) }()
				_, _ = io.WriteString(client, "GET /before HTTP/1.1\r\nHost: a\r\n\r\n")
				_, _ = client.Read(make([]byte, 1<<10))
				_, _ = io.WriteString(client, "GET "+path+" HTTP/1.1\r\nHost: a\r\n\r\n")
				start := time.Now()
				select {
				case at := <-ended:
					if took := at.Sub(start); took < patience || took > patience+turn+moving {
						t.Errorf("ended after %v", took)
					}
				case <-time.After(time.Hour):
					t.Error("still writing after an hour")
				}
				_ = client.Close()
				_ = s.Close()
			})
		})
	}
}
