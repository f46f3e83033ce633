package traffic

import (
	"errors"
	"fmt"
	"sync"
	"time"

	"golang.org/x/net/http2"
)

// A client makes calls over a connection. Its mutex guards all but reading.
type client struct {
	*link

	kind  Kind
	calls int
	head  []byte

	mu       sync.Mutex
	open     map[uint32]*call
	streams  []*call             // that stay open, for the open loop
	answered func(k *call) error // is called for each call that is not a stream, and for each message of one
	ponged   bool
}

// A call is under way.
type call struct {
	id     uint32
	window int64  // that the server takes
	rest   []byte // of a message that is sent
	queued int    // messages behind it
	got    int    // bytes of an answer, of a stream
	ended  bool   // a stream was, by the client
	asked  []time.Time
}

// make begins a call.
func (c *client) make() (*call, error) {
	id, err := c.begin(c.head)
	k := &call{id: id, window: c.link.first}
	c.open[id] = k
	return k, errors.Join(err, c.send(k, max(1, c.kind.Sends)))
}

// send sends n messages more, as far as the server takes them.
func (c *client) send(k *call, n int) error {
	k.queued += n
	for {
		if len(k.rest) == 0 {
			if k.queued == 0 {
				return nil
			}
			k.rest, k.queued = c.kind.Message, k.queued-1
		}
		n := min(int64(len(k.rest)), k.window, c.window, frameBytes)
		if n <= 0 {
			return nil
		}
		part := k.rest[:n]
		k.rest = k.rest[n:]
		k.window -= n
		c.window -= n
		last := len(k.rest) == 0 && k.queued == 0 && !c.kind.streams()
		if err := c.frames.WriteData(k.id, last, part); err != nil {
			return err
		}
	}
}

// end ends a stream.
func (c *client) end(k *call) error {
	k.ended = true
	return c.frames.WriteData(k.id, true, nil)
}

// patience is how long an answer may take.
const patience = 10 * time.Second

// read handles what comes until all is done, which may take some patience longer than until an
// instant.
func (c *client) read(until time.Time, done func() bool) error {
	if now := time.Now(); until.Before(now) {
		until = now
	}
	if err := c.conn.SetDeadline(until.Add(patience)); err != nil {
		return err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for !done() {
		if err := c.flush(); err != nil {
			return err
		}
		c.mu.Unlock()
		frame, err := c.frames.ReadFrame()
		c.mu.Lock()
		if err == nil {
			err = c.handle(frame)
		}
		if err != nil {
			return err
		}
	}
	return c.out.Flush()
}

// handle handles a frame.
func (c *client) handle(frame http2.Frame) error {
	wider, by, err := c.control(frame)
	if err != nil {
		return err
	}
	if wider {
		if err := c.widen(by); err != nil {
			return err
		}
	}
	k := c.open[frame.Header().StreamID]
	switch f := frame.(type) {
	case *http2.PingFrame:
		c.ponged = c.ponged || f.IsAck()
	case *http2.WindowUpdateFrame:
		if k != nil {
			k.window += int64(f.Increment)
			return c.send(k, 0)
		}
	case *http2.DataFrame:
		if k != nil && c.kind.streams() {
			return c.came(k, len(f.Data()))
		}
	case *http2.RSTStreamFrame:
		if k != nil { // it is not answered yet
			return fmt.Errorf("the server reset a call: %v", f.ErrCode)
		}
	case *http2.HeadersFrame:
		if k == nil || !f.StreamEnded() {
			return nil
		}
		if delete(c.open, k.id); !c.kind.streams() {
			return c.answered(k)
		}
		if !k.ended {
			return errors.New("the server ended a stream")
		}
	}
	return nil
}

// widen has each call send more, by as much over each.
func (c *client) widen(by int64) error {
	for _, k := range c.open {
		k.window += by
		if err := c.send(k, 0); err != nil {
			return err
		}
	}
	return nil
}

// came counts what was answered over a stream.
func (c *client) came(k *call, n int) error {
	for k.got += n; k.got >= len(c.kind.Message); {
		k.got -= len(c.kind.Message)
		if err := c.answered(k); err != nil {
			return err
		}
	}
	return nil
}
