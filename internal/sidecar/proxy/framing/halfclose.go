package framing

import (
	"errors"
	"io"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
)

// How often it is looked whether a client that sends nothing more still waits for an answer:
// soon at first, since most that do not have left.
const (
	firstLook = 5 * time.Millisecond
	lastLook  = 250 * time.Millisecond
)

// firstByte is the first byte of any answer of HTTP/1.
const firstByte = 'H'

// A halfClose is the state of a connection whose client sends nothing more.
//
// A client may close its sending side behind a request and wait for the answer (RFC 9112,
// section 9.6). One that has left looks alike, and its request is to end. The two differ
// once something is sent: a client that left resets the connection. So the first byte of
// the answer, which is the same for all, is sent ahead of the rest. Where the answer has begun
// its next part shows it.
type halfClose struct {
	answered atomic.Uint64 // requests
	wake     chan struct{} // the deadline of reads changed, or the connection was closed

	mu    sync.Mutex // held while something is written
	begun bool       // something of the answer was
	ahead bool       // its first byte was, and nothing else
	tried bool       // something was sent to see whether the client is there
}

// State notes what net/http does with the connection; see http.Server.ConnState.
func State(conn net.Conn, s http.ConnState) {
	c, ok := conn.(*Conn)
	if !ok {
		return
	}
	if c.http2.Load() {
		switch s {
		case http.StateActive:
			c.memory.Active() // one that was closed meanwhile ends by itself
		case http.StateIdle:
			c.rest()
		default:
		}
		return
	}
	if s == http.StateIdle { // net/http does not call a request active that it has read with the one before
		c.half.mu.Lock()
		c.half.begun, c.half.ahead, c.half.tried = false, false, false
		c.half.mu.Unlock()
		c.half.answered.Add(1)
		c.rest()
		c.idle.parks.Store(c.mayPark())
	}
}

// lingers reports whether the client has closed its sending side, and waits for an answer:
// one that left in the middle of that request's body does not.
func (c *Conn) lingers(err error) bool {
	return errors.Is(err, io.EOF) && c.awaited() > 0 && (c.scanner.betweenBodies() || c.awaited() > 1)
}

// awaited returns how many requests with a complete head are not answered.
func (c *Conn) awaited() uint64 { return c.scanner.heads - c.half.answered.Load() }

// linger reads on behind a request whose client has closed its sending side: until the
// answer is complete, for which net/http ends the read, or the client has left.
func (c *Conn) linger(p []byte) (int, error) {
	if !CanWatch(c.Conn) {
		return 0, io.EOF
	}
	for pause := firstLook; ; pause = min(2*pause, lastLook) {
		if err := c.sendAhead(); err != nil {
			return 0, err
		}
		look := time.NewTimer(pause)
		select {
		case <-c.half.wake:
		case <-look.C:
		}
		look.Stop()
		if n, err := c.Conn.Read(p); n > 0 || !errors.Is(err, io.EOF) {
			return n, err // the deadline, or that the connection was closed
		}
		switch {
		case c.awaited() == 0:
			return 0, io.EOF
		case IsReset(c.Conn):
			return 0, syscall.ECONNRESET
		}
	}
}

// sendAhead sends something to see whether the client is there, once and where it can.
func (c *Conn) sendAhead() (err error) {
	c.half.mu.Lock()
	defer c.half.mu.Unlock()
	switch {
	case c.half.tried:
	case !c.half.begun:
		c.half.tried, c.half.begun, c.half.ahead = true, true, true
		_, err = c.out.Write([]byte{firstByte})
	}
	return err
}

// Close implements net.Conn.
func (c *Conn) Close() error {
	defer c.interrupt()
	if c.idle.parked.Load() {
		return nil
	}
	return c.socket.Close()
}

func (c *Conn) interrupt() {
	select {
	case c.half.wake <- struct{}{}:
	default:
	}
}
