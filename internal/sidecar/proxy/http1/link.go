package http1

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"sync"
	"time"

	"github.com/weir-dev/weir/internal/sidecar/membudget"
	"github.com/weir-dev/weir/internal/sidecar/proxy/exchange"
	"github.com/weir-dev/weir/internal/sidecar/proxy/socket"
)

// maxAnswerHead bounds the head of an answer in bytes, as http.Transport does.
const maxAnswerHead = 10 << 20

var errHeadTooLong = fmt.Errorf("the header of the app's answer exceeds %d bytes", maxAnswerHead)

// A link is a connection to the app, which one request at a time uses.
type link struct {
	conn   net.Conn
	io     socket.IO // through which it is read from and written to
	in     input
	used   bool // it was there before
	roomy  bool // by Config.DialRoomy
	spoken bool // the app has said something since the request
	filled bool // the buffer, by the last read into it
	since  time.Time
}

// linkBytes is the size of the buffer that heads of answers are read through, with what comes of
// their bodies.
const linkBytes = 16 << 10

var linkBuffers = sync.Pool{New: func() any { return new([linkBytes]byte) }}

// release gives the buffer back. Nothing is in there.
func (l *link) release() {
	if len(l.in.buf) == linkBytes {
		linkBuffers.Put((*[linkBytes]byte)(l.in.buf))
	}
	l.in = input{}
}

// connect has the request use an idle connection, or a new one.
func (t *transfer) connect(fresh bool) (l *link, err error) {
	s := t.conn.server
	kept, dial := &s.links, s.cfg.Dial
	if t.takeRoom() {
		kept, dial = &s.roomy, s.cfg.DialRoomy
	}
	if !fresh {
		l = kept.take()
	}
	if l == nil {
		t.wait() // until it is open
		conn, err := dial(t)
		if err != nil {
			return nil, err
		}
		l = &link{conn: conn, roomy: t.room}
		l.io.Use(conn)
	}
	l.spoken = false
	l.in.buf = linkBuffers.Get().(*[linkBytes]byte)[:] //nolint:forcetypeassert // nothing else is in there
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.over {
		_ = l.conn.Close()
		return nil, context.Canceled
	}
	t.link, t.waits = l, true
	return l, nil
}

// disconnect ends the use of a connection, which is kept for others if it may be.
func (t *transfer) disconnect(l *link, again bool) {
	t.mu.Lock()
	t.link = nil
	again = again && !t.over
	t.mu.Unlock()
	again = again && !l.in.some()
	l.release()
	kept := &t.conn.server.links
	if l.roomy {
		kept = &t.conn.server.roomy
	}
	if !again || !kept.put(l) {
		_ = l.conn.Close()
	}
	t.giveRoom()
}

// takeRoom takes what a roomy connection may hold, unless memory is short. A tunnel, which may last for
// long, has none. The two kinds are kept apart, or where memory is about to be short each request
// might find one of the other.
func (t *transfer) takeRoom() bool {
	s := t.conn.server
	if !t.room {
		t.room = s.cfg.DialRoomy != nil && t.r.Header["Upgrade"] == nil && (s.cfg.Memory == nil || s.cfg.Memory.TakeRoom(membudget.Bodies, membudget.RoomyBytes))
	}
	return t.room
}

func (t *transfer) giveRoom() {
	if s := t.conn.server; t.room && s.cfg.Memory != nil {
		s.cfg.Memory.Give(membudget.Bodies, membudget.RoomyBytes)
	}
	t.room = false
}

// fill reads once from the app, behind what was read through the buffer of the connection: it is given
// back, since a client that does not read the rest of its answer may take minutes for that.
func (t *transfer) fill(l *link, buffer []byte) (n int, err error) {
	l.release()
	return t.await(l, buffer)
}

// await reads once from the app. A client that waits for long is watched from then on, and asked for
// the body of its request if the app does not ask.
func (t *transfer) await(l *link, buffer []byte) (n int, err error) {
	for {
		if n, err = l.io.Read(buffer); n > 0 {
			l.spoken = true
			return n, nil
		}
		if !errors.Is(err, os.ErrDeadlineExceeded) {
			return 0, err //nolint:wrapcheck // of the connection
		}
		if err := t.late(l); err != nil {
			return 0, err
		}
	}
}

// late is called when the app has said nothing for a while. It sets the next deadline.
func (t *transfer) late(l *link) error {
	var next time.Time
	switch {
	case t.expects && t.slow:
		if err := t.ask(l, []byte(askForBody)); err != nil {
			return err
		}
	case t.expects:
		next = time.Now().Add(askTime)
	case t.upload != nil && !t.upload.whole.Load():
		next = time.Now().Add(lastLook)
	}
	t.slow = true
	t.look()
	return l.conn.SetReadDeadline(next) //nolint:wrapcheck // of the connection
}

const (
	askForBody = "HTTP/1.1 100 Continue\r\n\r\n"
	// askTime is how long the app has to ask for a body.
	askTime = time.Second
)

// ask asks the client for the body of its request, and begins to send it.
func (t *transfer) ask(l *link, how []byte) error {
	t.expects = false
	if err := t.conn.out.interim(how); err != nil {
		t.cancel(exchange.Left)
		return err
	}
	t.send(l)
	return nil
}

// more reads once from the app, into the buffer of the connection.
func (t *transfer) more(l *link, most int) error {
	if !l.in.room(most) {
		return errHeadTooLong
	}
	n, err := t.await(l, l.in.buf[l.in.to:])
	l.in.to += n
	l.filled = l.in.to == len(l.in.buf)
	return err
}
