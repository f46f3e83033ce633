package framing

import (
	"net"
	"slices"
	"time"
)

// open reads up to where the protocol is known. HTTP/2 is served apart, and the server behind the
// listener is made to believe that the connection has ended.
func (c *Conn) open(p []byte) (int, error) {
	if len(p) < len(preface) {
		return c.read(p) // no server asks for so little
	}
	for {
		held := copy(p, preface[:c.scanner.matched])
		n, err := c.read(p[held:])
		if n == 0 {
			return held, err
		}
		good, malformed := c.scanner.scan(p[held : held+n])
		switch {
		case malformed != nil && good == 0:
			return c.breakOff(p, 0, malformed)
		case malformed != nil:
			return c.breakOff(p, held+good, malformed)
		case c.scanner.next == otherProtocol:
			c.http2.Store(true)
			return 0, c.handOver(slices.Clone(p[len(preface) : held+n]))
		case !c.follow(good):
			return 0, c.giveUp()
		case c.scanner.next != opening:
			c.hold(p[held+good : held+n])
			return held + good, err
		case err != nil:
			return held + n, err
		}
	}
}

// handOver has the connection served as HTTP/2.
func (c *Conn) handOver(rest []byte) error {
	if !c.memory.Grow() {
		return c.giveUp()
	}
	if c.Conn.SetReadDeadline(time.Time{}) != nil {
		return net.ErrClosed
	}
	c.idle.parked.Store(true)
	go c.park.http2(c.socket, c.memory, rest)
	return errHandedOver
}
