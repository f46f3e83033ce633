package framing

import (
	"errors"
	"fmt"
	"os"
	"time"
)

const (
	// A write has failed when the peer took nothing in this number of its turns.
	turns = 3
	turn  = 10 * time.Second
	// moving is how often the deadline of writes moves, which it need not at each: it is
	// late by as much.
	moving = time.Second
)

// Write implements net.Conn. It fails when the peer takes nothing for 30 seconds, and not
// much later, so that one that does not read gives back its handler, its slot and its
// connection to the app. One that reads slowly stays. For HTTP/2, net/http does that.
//
// A waiting writer is notified of room only once there is much of it, but each turn
// begins with what there is.
func (c *Conn) Write(p []byte) (n int, err error) {
	if c.http2.Load() {
		return c.Conn.Write(p)
	}
	c.half.mu.Lock()
	defer c.half.mu.Unlock()
	c.half.begun = true
	if c.half.ahead && len(p) > 0 && p[0] == firstByte {
		c.half.ahead = false
		n, err := c.write(p[1:])
		return n + 1, err
	}
	return c.write(p)
}

func (c *Conn) write(p []byte) (n int, err error) {
	if err := c.move(); err != nil {
		return 0, err
	}
	for vain := 0; ; {
		taken, err := c.Conn.Write(p[n:])
		n += taken
		if !errors.Is(err, os.ErrDeadlineExceeded) {
			return n, err
		}
		if vain++; taken > 0 {
			vain = 0
		}
		if vain == turns {
			return n, err
		}
		if err := c.bound(turn); err != nil {
			return n, err
		}
	}
}

// move moves the deadline of writes unless it was moved just now.
func (c *Conn) move() error {
	now := time.Since(c.began)
	if now-time.Duration(c.moved.Load()) < moving {
		return nil
	}
	c.moved.Store(int64(now))
	return c.bound(turn + moving)
}

func (c *Conn) bound(left time.Duration) error {
	if err := c.Conn.SetWriteDeadline(time.Now().Add(left)); err != nil {
		return fmt.Errorf("bound a write: %w", err)
	}
	return nil
}

// SetWriteDeadline sets the deadline of writes for HTTP/2. Otherwise it is the
// connection's own: net/http takes it away after each request.
func (c *Conn) SetWriteDeadline(t time.Time) error {
	if c.http2.Load() {
		return c.Conn.SetWriteDeadline(t)
	}
	return nil
}

// SetDeadline sets both deadlines, as far as they may be.
func (c *Conn) SetDeadline(t time.Time) error {
	return errors.Join(c.SetReadDeadline(t), c.SetWriteDeadline(t))
}
