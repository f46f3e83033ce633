package membudget

import (
	"net"
	"net/netip"
	"sync/atomic"
	"time"
)

// A Holder is a connection that can be closed. Both methods may be called at any time.
type Holder interface {
	// Pending reports whether something of the client waits to be read.
	Pending() bool
	// Yield closes the connection, which is idle, or in the middle of a head.
	Yield(head bool)
}

// A phase is what a connection is at.
type phase int

const (
	idling phase = iota // between requests, or before the first
	inHead              // some of a head has come, and not all
	active              // a request is in flight
	gone
	phases
)

// A state is a phase and, in the higher bits, since when it lasts.
type state int64

const phaseBits = 2

func stateOf(p phase, since time.Duration) state { return state(since)<<phaseBits | state(p) }

func (s state) phase() phase { return phase(s & (1<<phaseBits - 1)) }

// A Connection has taken what one connection of a client needs. One goroutine at a time calls
// Idle, Head, Active and Widen; the others may be called concurrently.
type Connection struct {
	budget *Budget
	peer   *peer
	port   *Port
	from   netip.Addr
	holder Holder
	state  atomic.Int64
	bodies atomic.Int64 // over HTTP/2 that are charged for
	taken  [classes]atomic.Int64

	head int64 // bytes of a head that goes on
	wide bool  // see Widen
}

// A Port is where connections come in.
type Port struct {
	budget  *Budget
	bound   int64
	each    int64 // bytes of a connection
	scratch int64 // and more for the beginning of a head that goes on
}

// Port returns a port, whose connections take ConnectionBytes each. A reserved one may use all of the
// budget: it is for probes and metrics.
func (b *Budget) Port(reserved bool) *Port {
	p := &Port{budget: b, bound: b.size, each: ConnectionBytes, scratch: ScratchBytes}
	if !reserved {
		p.bound -= b.size / reservedPart
	}
	return p
}

// Of returns the port with connections that take that many bytes each, and no more for the beginning of
// a head.
func (p *Port) Of(bytes int64) *Port { return &Port{budget: p.budget, bound: p.bound, each: bytes} }

// Connect returns what a connection from an address takes, or false where too little is left.
func (p *Port) Connect(from netip.Addr, now time.Duration, h Holder) (*Connection, bool) {
	b := p.budget
	c := &Connection{budget: b, port: p, from: from, holder: h}
	c.state.Store(int64(stateOf(idling, now)))
	b.enter(c)
	if !c.take(Connections, p.each) {
		b.leave(c)
		return nil, false
	}
	return c, true
}

func (b *Budget) enter(c *Connection) {
	b.mu.Lock()
	defer b.mu.Unlock()
	c.peer = b.peers[c.from]
	if c.peer == nil {
		c.peer = new(peer)
		b.peers[c.from] = c.peer
	}
	c.peer.open++
	b.open[c] = struct{}{}
	b.opened(len(b.open))
}

func (b *Budget) leave(c *Connection) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if _, open := b.open[c]; !open {
		return
	}
	delete(b.open, c)
	if c.peer.open--; c.peer.open == 0 {
		delete(b.peers, c.from)
	}
	b.opened(len(b.open))
}

// Close gives back what the connection has taken and does not belong to a request.
func (c *Connection) Close() {
	c.state.Store(int64(gone))
	c.budget.leave(c)
	c.budget.freed(c.giveAll(Connections) + c.giveAll(Heads))
}

// Idle says that the connection holds no request from now on.
func (c *Connection) Idle(now time.Duration) {
	if c.head > 0 {
		c.head = 0
		c.giveAll(Heads)
	}
	c.enter(stateOf(idling, now))
}

// Head says that n more bytes of a head have come, at least one, and that it goes on. It returns false
// where there is no memory for it, or the connection has been closed.
func (c *Connection) Head(now time.Duration, n int) bool {
	more := longHead(c.head+int64(n)) - longHead(c.head)
	if c.head == 0 {
		more += c.port.scratch
	}
	c.head += int64(n)
	if more > 0 && !c.take(Heads, more) {
		return false
	}
	s := state(c.state.Load())
	return s.phase() == inHead || c.enter(stateOf(inHead, now))
}

// Active says that a request is in flight. It returns false when the connection was closed just
// before.
func (c *Connection) Active() bool {
	return state(c.state.Load()).phase() == active || c.enter(stateOf(active, 0))
}

// enter changes the state unless the connection has given way.
func (c *Connection) enter(next state) bool {
	for {
		old := c.state.Load()
		if state(old).phase() == gone {
			return false
		}
		if c.state.CompareAndSwap(old, int64(next)) {
			return true
		}
	}
}

// Park gives back what a connection that is idle takes beyond ParkedBytes or WaitingBytes. It may not
// have grown.
func (c *Connection) Park(keeps int64) {
	n := c.port.each - keeps
	for taken := &c.taken[Connections]; ; {
		old := taken.Load()
		if old < n { // closed meanwhile
			return
		}
		if taken.CompareAndSwap(old, old-n) {
			c.budget.put(Connections, n, c.peer)
			c.budget.freed(n)
			return
		}
	}
}

// Unpark takes that again, or returns false where too little is left.
func (c *Connection) Unpark(kept int64) bool { return c.take(Connections, c.port.each-kept) }

// Widen lets the kernel keep as much of what the client sends as a body needs. A request over HTTP/1.1
// that the connection admits from then on takes that much more, with a body or without.
func (c *Connection) Widen(socket net.Conn) {
	if !c.wide {
		c.wide = true
		_ = widen(socket) // one that fails is slower
	}
}

// Grow takes what a connection of HTTP/2 needs beside one of HTTP/1.1.
func (c *Connection) Grow() bool { return c.take(Connections, HTTP2Bytes) }

// take takes n bytes, if need be of other connections, which give way. The connection has them
// until it is closed, or gives all of the class back.
func (c *Connection) take(class Class, n int64) bool {
	if !c.claim(class, n) {
		return false
	}
	c.taken[class].Add(n)
	if state(c.state.Load()).phase() == gone { // Close may have given back all before
		c.giveAll(class)
		return false
	}
	return true
}

// claim takes n bytes for something that gives them back itself.
func (c *Connection) claim(class Class, n int64) bool {
	b := c.budget
	short := b.try(class, n, c.port.bound, c.peer)
	if short == none {
		return true
	}
	only := c.peer
	if short == ofAll {
		only = nil
	}
	if b.reclaim(max(n, b.size/batchPart), c, only) && b.try(class, n, c.port.bound, c.peer) == none {
		return true
	}
	b.refused[class].Add(1)
	return false
}

func (c *Connection) giveAll(class Class) (n int64) {
	n = c.taken[class].Swap(0)
	c.budget.put(class, n, c.peer)
	return n
}
