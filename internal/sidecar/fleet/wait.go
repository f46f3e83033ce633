package fleet

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/weir-dev/weir/internal/fleetpb"
)

const (
	// maxWaits is at how many replicas the client waits at most.
	maxWaits = 8
	// A fleet that comes to wait at a replica spreads over this time, where the leader names none.
	defaultSpread = time.Second
	// longestWaitPause is the longest pause between attempts to wait at a replica that cannot be reached.
	longestWaitPause = 5 * time.Second
)

// A wait keeps a stream at a replica that does not lead, until it does. The stream is
// authenticated by then, so the next leader has its sidecars at once. Client.mu guards
// all but the channel.
type wait struct {
	stopped chan struct{}
	way     *way // nil between attempts
	waiting bool // the replica says that the stream waits
}

// await has the client wait at these replicas and no others. It does not block.
func (c *Client) await(ctx context.Context, at *fleetpb.Replicas) {
	addresses := at.GetAddresses()[:min(len(at.GetAddresses()), maxWaits)]
	spread := time.Duration(at.GetSpreadMillis()) * time.Millisecond
	if spread <= 0 {
		spread = defaultSpread
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for address, w := range c.waits {
		if slices.Contains(addresses, address) {
			continue
		}
		delete(c.waits, address)
		close(w.stopped)
		if w.way != nil {
			w.way.end()
		}
	}
	for _, address := range addresses {
		if c.waits[address] == nil {
			w := &wait{stopped: make(chan struct{})}
			c.waits[address] = w
			c.waiters.Go(func() { c.keepWaiting(ctx, w, address, rand.N(spread)) })
		}
	}
}

// keepWaiting waits at an address until the replica leads or the wait is stopped. It begins after a while.
func (c *Client) keepWaiting(ctx context.Context, w *wait, address string, next time.Duration) {
	var pause backoff
	for {
		select {
		case <-time.After(next):
		case <-w.stopped:
			return
		case <-ctx.Done():
			return
		}
		way, waited, err := c.wait(ctx, w, address)
		if err == nil && c.offer(w, way) {
			return
		}
		if way != nil {
			way.end()
		}
		if waited && err != nil {
			pause.reset()
		}
		next = pause.next(longestWaitPause, err)
	}
}

// wait opens a stream and waits until the replica leads.
func (c *Client) wait(ctx context.Context, w *wait, address string) (opened *way, waited bool, err error) {
	opened, err = c.dial.open(ctx, address)
	if err != nil {
		return nil, false, err
	}
	c.mu.Lock()
	w.way = opened
	wanted := c.waits[address] == w
	c.mu.Unlock()
	if !wanted {
		return opened, false, errEnded
	}
	waited, err = opened.await(func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		w.waiting = true
	})
	c.mu.Lock()
	defer c.mu.Unlock()
	w.way, w.waiting = nil, false
	return opened, waited, err
}

// offer has Run go on with a replica that leads, unless it has that leader already, or a
// later one. Then it returns false.
func (c *Client) offer(w *wait, to *way) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case c.waits[to.address] != w, to.term < c.term, to.term == c.term && c.link != nil:
		return false
	case c.leads != nil && c.leads.term >= to.term:
		return false
	case c.leads != nil:
		c.leads.end()
	default:
		close(c.led)
	}
	delete(c.waits, to.address)
	c.leads = to
	if c.link != nil { // its good-bye was not read yet
		c.moving = c.moveNow()
	}
	if c.abandon != nil {
		c.abandon()
	}
	return true
}

// take returns the stream to the replica that leads now, nil for none. Work that is
// under way from then on ends by abandon when another one leads.
func (c *Client) take(abandon func()) *way {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.abandon = abandon
	to := c.leads
	if to != nil {
		c.leads, c.led = nil, make(chan struct{})
	}
	return to
}

// waiting returns at how many replicas the client waits.
func (c *Client) waiting() (n int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, w := range c.waits {
		if w.waiting {
			n++
		}
	}
	return n
}

// stopWaiting returns when the client waits nowhere, after the context of await is done.
func (c *Client) stopWaiting() {
	c.waiters.Wait()
	if to := c.take(nil); to != nil {
		to.end()
	}
}

// await returns when the replica leads. It calls waits when it says that the stream waits.
func (w *way) await(waits func()) (waited bool, err error) {
	late := time.AfterFunc(greetTimeout, w.end)
	defer late.Stop()
	if err := w.Send(&fleetpb.FromHolder{Message: &fleetpb.FromHolder_Await{Await: new(fleetpb.Await)}}); err != nil {
		return false, err
	}
	if header, _ := w.Header(); header == nil { // its error is that of Recv
		_, err := w.Recv()
		return false, unserved(err)
	}
	late.Stop()
	waits()
	m, err := w.Recv()
	if err != nil {
		return true, err
	}
	if w.term = m.GetLead().GetTerm(); w.term == 0 {
		return true, fmt.Errorf("the controller ended a wait with %T", m.GetMessage())
	}
	return true, nil
}
