package traffic

import (
	"errors"
	"sync"
	"time"
)

// A Kind is what calls are like.
type Kind struct {
	Path    string
	Message []byte // that is sent, with what gRPC writes before it
	// Sends is how many messages a call sends, one behind the other. At 0 a call is a stream both ways
	// that stays open, and each message is answered by as many bytes.
	Sends int
	// Counts is how many messages an answered call counts as. In a stream it is each message.
	Counts int
}

func (k Kind) streams() bool { return k.Sends == 0 }

// GRPC is a load of calls of gRPC.
type GRPC []*client

// DialGRPC opens n connections for that many calls each, and makes these once.
func DialGRPC(address string, n, calls int, kind Kind) (GRPC, error) {
	head, err := head(kind.Path)
	if err != nil {
		return nil, err
	}
	var all GRPC
	for range n {
		l, err := newLink(address)
		if err != nil {
			all.Close()
			return nil, err
		}
		all = append(all, &client{link: l, kind: kind, calls: calls, head: head, open: map[uint32]*call{}})
	}
	if _, err := all.Closed(time.Time{}); err != nil {
		all.Close()
		return nil, err
	}
	return all, nil
}

// Closed implements Load.
func (all GRPC) Closed(until time.Time) (answered int, err error) {
	return together(len(all), func(i int) (int, error) { return all[i].closed(until) })
}

// Open implements Load. No call waits for another, and neither does a message of a stream.
func (all GRPC) Open(perSecond int, length time.Duration) ([]time.Duration, error) {
	took := make([][]time.Duration, len(all))
	p := newPace(len(all), perSecond, length)
	_, err := together(len(all), func(i int) (_ int, err error) {
		if p.first(i).Before(p.end) {
			took[i], err = all[i].opened(i, p)
		}
		return 0, err
	})
	return sorted(took), err
}

// Close implements Load.
func (all GRPC) Close() {
	for _, c := range all {
		_ = c.conn.Close()
	}
}

func (c *client) closed(until time.Time) (answered int, err error) {
	c.answered = func(k *call) error {
		answered += c.kind.Counts
		switch over := !time.Now().Before(until); {
		case c.kind.streams() && over:
			return c.end(k)
		case c.kind.streams():
			return c.send(k, 1)
		case over:
			return nil
		}
		_, err := c.make()
		return err
	}
	c.mu.Lock()
	for _, k := range c.streams { // of an open loop before
		err = errors.Join(err, c.end(k))
	}
	c.streams = nil
	for range c.calls {
		_, failed := c.make()
		err = errors.Join(err, failed)
	}
	c.mu.Unlock()
	err = errors.Join(err, c.read(until, func() bool { return len(c.open) == 0 }))
	return answered, err
}

// opened sends what is due of connection i. The answer to a ping ends it behind the last one, or
// nothing would come to be read.
func (c *client) opened(i int, p pace) (took []time.Duration, err error) {
	unanswered := 0
	c.ponged = false
	c.answered = func(k *call) error {
		took = append(took, time.Since(k.asked[0]))
		k.asked = k.asked[1:]
		unanswered--
		return nil
	}
	var failed error
	var sending sync.WaitGroup
	sending.Go(func() {
		failed = p.keep(i, func(sent time.Time) error {
			c.mu.Lock()
			defer c.mu.Unlock()
			unanswered++
			return errors.Join(c.ask(sent), c.out.Flush())
		})
		c.mu.Lock()
		defer c.mu.Unlock()
		failed = errors.Join(failed, c.frames.WritePing(false, [8]byte{}), c.out.Flush())
	})
	err = c.read(p.end, func() bool { return c.ponged && unanswered == 0 })
	sending.Wait()
	return took, errors.Join(err, failed)
}

// ask begins a call, or sends a message over the stream that has not sent one for longest.
func (c *client) ask(sent time.Time) (err error) {
	var k *call
	if c.kind.streams() && len(c.streams) == c.calls {
		k = c.streams[0]
		c.streams = c.streams[1:]
		err = c.send(k, 1)
	} else {
		k, err = c.make()
	}
	if c.kind.streams() {
		c.streams = append(c.streams, k)
	}
	k.asked = append(k.asked, sent)
	return err
}
