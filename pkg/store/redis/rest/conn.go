package rest

import (
	"context"
	"errors"
	"net"
	"os"
	"sync"
	"time"
)

// A conn speaks the protocol of Redis to a client, and the API to the database. Written
// commands are sent when an answer is read for the first time, as a client does that has
// written all of a pipeline. All methods but Close and those that set deadlines belong to
// one goroutine at a time.
type conn struct {
	client *Client
	life   context.Context //nolint:containedctx // which ends with the connection
	end    context.CancelFunc

	unparsed []byte     // of a command that was not written whole
	commands [][]string // that were not sent
	replies  []byte     // that were not read

	mu       sync.Mutex
	deadline time.Time // of Read
}

var _ net.Conn = (*conn)(nil)

// errNothing is of a client that reads where no answer is due.
var errNothing = errors.New("an answer is read to no command")

// Write takes commands up.
func (c *conn) Write(b []byte) (int, error) {
	if c.life.Err() != nil {
		return 0, net.ErrClosed
	}
	c.unparsed = append(c.unparsed, b...)
	commands, rest, err := parse(c.unparsed)
	if err != nil {
		return 0, err
	}
	c.commands = append(c.commands, commands...)
	c.unparsed = append(c.unparsed[:0], rest...)
	return len(b), nil
}

// Read returns answers. It sends the commands that were written, and waits until there are
// answers to all of them.
func (c *conn) Read(b []byte) (int, error) {
	if len(c.replies) == 0 {
		if err := c.exchange(); err != nil {
			return 0, err
		}
	}
	n := copy(b, c.replies)
	c.replies = c.replies[n:]
	return n, nil
}

func (c *conn) exchange() error {
	if len(c.commands) == 0 {
		return errNothing
	}
	ctx, cancel, err := c.context()
	if err != nil {
		return err
	}
	defer cancel()
	commands := c.commands
	c.commands = nil
	if commands[0][0] == "hello" { // the client's first; it falls back to the older protocol
		c.replies = appendError(nil, "ERR unknown command 'hello'")
		return nil
	}
	c.replies, err = c.client.send(ctx, commands)
	return err
}

// context returns the time that a request has.
func (c *conn) context() (context.Context, context.CancelFunc, error) {
	if c.life.Err() != nil {
		return nil, nil, net.ErrClosed
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.deadline.IsZero() {
		return c.life, func() {}, nil
	}
	if !time.Now().Before(c.deadline) {
		return nil, nil, os.ErrDeadlineExceeded
	}
	ctx, cancel := context.WithDeadline(c.life, c.deadline)
	return ctx, cancel, nil
}

// Close ends a Read that is under way.
func (c *conn) Close() error {
	c.end()
	return nil
}

// SetReadDeadline is of the next request; one that is under way has its own.
func (c *conn) SetReadDeadline(t time.Time) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.deadline = t
	return nil
}

// SetDeadline is SetReadDeadline: nothing is sent by Write.
func (c *conn) SetDeadline(t time.Time) error { return c.SetReadDeadline(t) }

// SetWriteDeadline does nothing.
func (c *conn) SetWriteDeadline(time.Time) error { return nil }

func (c *conn) LocalAddr() net.Addr  { return address{} }
func (c *conn) RemoteAddr() net.Addr { return address{c.client.host} }

// An address is the host of a URL.
type address struct{ host string }

func (address) Network() string  { return "http" }
func (a address) String() string { return a.host }
