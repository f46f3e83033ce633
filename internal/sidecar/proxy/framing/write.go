package framing

import (
	"errors"
	"fmt"
	"io"
	"net"
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

// A Writer writes to a client. It fails when the client takes nothing for 30 seconds, and not
// much later, so that one that does not read gives back its request, its slot and its
// connection to the app. One that reads slowly stays. One goroutine at a time writes.
//
// A waiting writer is notified of room only once there is much of it, but each turn
// begins with what there is.
type Writer struct {
	Conn    net.Conn
	Through io.Writer // what writes to Conn, up to its deadline; nil: Conn itself
	moved   time.Time // when the deadline was
}

// Write implements io.Writer.
func (w *Writer) Write(p []byte) (n int, err error) {
	if now := time.Now(); now.Sub(w.moved) >= moving {
		if err := w.bound(now, turn+moving); err != nil {
			return 0, err
		}
	}
	through := w.Through
	if through == nil {
		through = w.Conn
	}
	for vain := 0; ; {
		taken, err := through.Write(p[n:])
		n += taken
		if !errors.Is(err, os.ErrDeadlineExceeded) {
			return n, err //nolint:wrapcheck // of the connection
		}
		if vain++; taken > 0 {
			vain = 0
		}
		if vain == turns {
			return n, err //nolint:wrapcheck // of the connection
		}
		if err := w.bound(time.Now(), turn); err != nil {
			return n, err
		}
	}
}

func (w *Writer) bound(now time.Time, left time.Duration) error {
	if err := w.Conn.SetWriteDeadline(now.Add(left)); err != nil {
		return fmt.Errorf("bound a write: %w", err)
	}
	w.moved = now.Add(left - turn - moving)
	return nil
}

// Write implements net.Conn; see Writer. For HTTP/2, net/http bounds writes.
func (c *Conn) Write(p []byte) (n int, err error) {
	if c.http2.Load() {
		return c.Conn.Write(p)
	}
	c.half.mu.Lock()
	defer c.half.mu.Unlock()
	c.half.begun = true
	if c.half.ahead && len(p) > 0 && p[0] == firstByte {
		c.half.ahead = false
		n, err := c.out.Write(p[1:])
		return n + 1, err
	}
	return c.out.Write(p)
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
