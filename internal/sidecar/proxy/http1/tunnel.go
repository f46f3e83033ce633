package http1

import (
	"bytes"
	"errors"
	"io"
	"time"

	"github.com/weir-dev/weir/internal/sidecar/proxy/exchange"
)

// silence is how long a client has to end a tunnel that the app has ended.
const silence = 5 * time.Second

// isWebSocket reports whether an answer switches to the one protocol that a connection may become.
func isWebSocket(a *answerHead) bool {
	n := 0
	for _, f := range a.fields {
		if string(f.name.of(a.raw)) == "Upgrade" {
			if n++; !bytes.EqualFold(f.value.of(a.raw), []byte("websocket")) {
				return false
			}
		}
	}
	return n > 0
}

// tunnel passes on what comes, both ways, until both sides have ended. Each may end its own and go
// on reading.
func (t *transfer) tunnel(l *link, a *answerHead) {
	t.handler.Head(a.status, a)
	if u := t.upload; u != nil {
		<-u.done // a request for a tunnel may have a body
	}
	t.unwatch()
	t.conn.memory.Widen(t.conn.Conn)
	out := t.appendStatus(nil, a.status, a.phrase.of(a.raw))
	out = append(a.appendTo(out), "Connection: Upgrade\r\nUpgrade: websocket\r\n\r\n"...)
	out = append(out, l.in.bytes()...)
	l.in.skip(len(l.in.bytes()))
	if t.conn.out.write(out, false) != nil || l.conn.SetReadDeadline(time.Time{}) != nil || t.conn.bound(time.Time{}) != nil {
		t.end(exchange.Left)
		return
	}
	down := make(chan struct{})
	go func() {
		defer close(down)
		t.down(l)
	}()
	if !t.up(l) {
		t.cancel(exchange.Left)
		_ = t.conn.Conn.Close() // which ends a write to it
	}
	<-down
	t.end(exchange.Complete)
}

// up passes on what the client sends, and reports whether the client has ended it.
func (t *transfer) up(l *link) bool {
	buffers := &t.conn.server.buffers
	buffer := buffers.forTunnel()
	defer buffers.put(buffer)
	for part := t.conn.in.bytes(); ; {
		if len(part) > 0 {
			if _, err := l.io.Write(part); err != nil {
				return false
			}
		}
		n, err := t.conn.Read(buffer)
		if part = buffer[:n]; n > 0 {
			continue
		}
		if !errors.Is(err, io.EOF) {
			return false
		}
		half, ok := l.conn.(interface{ CloseWrite() error })
		return ok && half.CloseWrite() == nil
	}
}

// down passes on what the app sends.
func (t *transfer) down(l *link) {
	c := t.conn
	buffer := c.server.buffers.forTunnel()
	defer c.server.buffers.put(buffer)
	for {
		n, err := l.io.Read(buffer)
		if n > 0 {
			if c.out.write(buffer[:n], false) == nil {
				continue
			}
		} else if errors.Is(err, io.EOF) && c.SetReadDeadline(time.Now().Add(silence)) == nil {
			c.closeWrite()
			return
		}
		_ = c.Conn.Close()
		_ = l.conn.Close()
		return
	}
}
