package http1

import (
	"errors"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/weir-dev/weir/internal/sidecar/proxy/framing"
)

// The answers to heads that are not read to their end.
const (
	badRequest = "HTTP/1.1 400 Bad Request\r\nContent-Type: text/plain; charset=utf-8\r\nConnection: close\r\nContent-Length: 15\r\n\r\n400 Bad Request"
	tooLarge   = "HTTP/1.1 431 Request Header Fields Too Large\r\nContent-Type: text/plain; charset=utf-8\r\nConnection: close\r\nContent-Length: 35\r\n\r\n431 Request Header Fields Too Large"
)

// next waits for the head of the next request.
func (c *conn) next() outcome {
	c.prepare()
	if c.in.some() {
		c.in.shrink(c.scratch.first[:])
		c.scratch.head.reset(c.post)
	}
	if !c.rest() || !c.expire() {
		return over
	}
	for came := c.in.to - c.in.from; ; {
		if came > 0 {
			if !c.begin() {
				return over
			}
			switch done, reason := c.parse(); {
			case reason != "":
				c.malformed()
				c.turnAway(badRequest)
				return over
			case done:
				return c.complete()
			case c.http2.Load():
				return c.handOver()
			case !c.memory.Head(time.Since(process), came):
				c.turnAway(framing.NoMemory)
				return over
			}
		}
		var what outcome
		if came, what = c.more(); what != read {
			return what
		}
	}
}

// parse reads a head as far as it has come.
func (c *conn) parse() (done bool, reason string) {
	p := c.in.bytes()
	if !c.known {
		n := min(len(p), len(framing.Preface))
		if string(p[:n]) == framing.Preface[:n] {
			c.http2.Store(c.server.cfg.HTTP2 != nil && n == len(framing.Preface))
			return false, ""
		}
		c.known = true
	}
	return c.scratch.head.parse(p)
}

// complete says that a head has come to its end.
func (c *conn) complete() outcome {
	if !c.memory.Active() {
		return over
	}
	c.first, c.post = false, c.scratch.head.Post
	return read
}

// more waits for a head, or for more of it.
func (c *conn) more() (came int, what outcome) {
	if c.in.some() {
		return c.follow()
	}
	for {
		n, err := c.await()
		switch {
		case n > 0:
			return n, read
		case !errors.Is(err, os.ErrDeadlineExceeded), c.first:
			return 0, over // the client has left, or is late
		case time.Since(c.since) >= c.server.idle:
			return 0, over
		case c.park():
			return 0, passed
		case c.bound(c.since.Add(c.server.idle)) != nil:
			return 0, over
		}
	}
}

// follow waits for the rest of a head that has begun to come.
func (c *conn) follow() (came int, what outcome) {
	if !c.in.room(maxHead) {
		c.turnAway(tooLarge)
		return 0, over
	}
	if h := &c.scratch.head; !c.first && !h.bounded {
		h.bounded = true
		if c.bound(time.Now().Add(headTime)) != nil {
			return 0, over
		}
	}
	n, _ := c.in.fill(c)
	if n == 0 {
		return 0, over // the client has left, or is late
	}
	return n, read
}

// expire bounds the wait for a request, unless that is late enough as it is.
func (c *conn) expire() bool {
	most := c.server.rest + c.server.slack
	if c.first {
		most = headTime
	}
	if left := c.deadline.Sub(c.since); left >= most-c.server.slack && left <= most {
		return true
	}
	return c.bound(c.since.Add(most)) == nil
}

// malformed says that a request is malformed.
func (c *conn) malformed() { c.server.cfg.Malformed() }

// turnAway answers and ends the connection. The client is given a moment to read that.
func (c *conn) turnAway(answer string) {
	if c.http2.Load() {
		answer = framing.GoAway
	}
	if c.out.ahead { // of an answer before that was not given
		answer = strings.TrimPrefix(answer, firstByte)
	}
	framing.TurnAway(c.Conn, answer)
}

// handOver has the connection served as HTTP/2.
func (c *conn) handOver() outcome {
	rest := slices.Clone(c.in.bytes()[len(framing.Preface):])
	if !c.memory.Grow() {
		c.turnAway(framing.GoAway)
		return over
	}
	if c.bound(time.Time{}) != nil {
		return over
	}
	c.memory.Widen(c.Conn)
	c.release()
	c.server.leave(c)
	c.server.cfg.HTTP2(c, c.memory, rest)
	return passed
}
