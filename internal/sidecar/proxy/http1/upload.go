package http1

import (
	"errors"
	"io"
	"os"
	"sync/atomic"
	"time"

	"github.com/weir-dev/weir/internal/sidecar/proxy/exchange"
)

// lastRead is how long the rest of a body may take that is sent again.
const lastRead = 50 * time.Millisecond

// An upload sends a body that has not all come with its head. A goroutine does, once it would have to
// wait for the client or for the app.
type upload struct {
	done   chan struct{} // closed when it has ended
	whole  atomic.Bool   // all of the body was read
	again  bool          // it may be sent again
	kept   []byte        // what was sent, as long as it may be
	buffer []byte
}

// send begins to send the rest of the body over l, unless there is none.
func (t *transfer) send(l *link) {
	if t.body.whole {
		return
	}
	t.unwatch()
	t.conn.memory.Widen(t.conn.Conn)
	if t.conn.bound(time.Time{}) != nil {
		t.cancel(exchange.Left)
		return
	}
	u := &upload{done: make(chan struct{}), again: l.used && t.repeats()}
	t.mu.Lock()
	t.upload, t.waits = u, true
	t.mu.Unlock()
	u.buffer = t.conn.server.buffers.get()
	if t.body.left >= wideBody {
		t.widen()
	}
	if rest, goesOn := u.begin(t, l); goesOn {
		go u.run(t, l, rest)
	} else {
		u.end(t)
	}
}

// mostNow is how much of a body is sent before the app's answer is read, which may come early.
const mostNow = 128 << 10

// begin sends what has come already and the app takes at once. rest was read and not sent.
func (u *upload) begin(t *transfer, l *link) (rest []byte, goesOn bool) {
	for sent := 0; sent < mostNow; sent += len(rest) {
		if rest, goesOn = u.read(t, t.conn.tryRead); !goesOn || rest == nil {
			return nil, goesOn
		}
		n, err := l.io.TryWrite(rest)
		switch {
		case err != nil, n < len(rest):
			return rest[n:], true
		case t.body.whole:
			return nil, false
		}
	}
	return nil, true
}

func (u *upload) run(t *transfer, l *link, rest []byte) {
	defer u.end(t)
	lost := false // to a connection that the app has closed
	for goesOn := true; goesOn; rest, goesOn = u.read(t, t.conn.Read) {
		if len(rest) > 0 && !lost {
			_, err := l.io.Write(rest)
			lost = err != nil
		}
		if t.body.whole || lost && !u.again {
			return
		}
	}
}

func (u *upload) end(t *transfer) {
	t.conn.server.buffers.put(u.buffer)
	close(u.done)
}

// read reads what is sent next, by a function. It returns nil where that reads nothing.
func (u *upload) read(t *transfer, by func([]byte) (int, error)) (part []byte, goesOn bool) {
	part, err := t.next(u.buffer, by)
	switch {
	case err == nil:
	case errors.Is(err, os.ErrDeadlineExceeded): // it is stopped
		return nil, false
	case errors.Is(err, errMalformed):
		t.conn.malformed()
		t.cancel(exchange.Malformed)
		return nil, false
	default:
		t.cancel(exchange.Left)
		return nil, false
	}
	if u.again = u.again && t.body.keeps(); u.again {
		u.kept = append(u.kept, part...)
	}
	if t.body.whole {
		u.whole.Store(true)
	}
	return part, true
}

// await waits a little for the rest of the body, and reports whether all of it is kept.
func (u *upload) await() bool {
	select {
	case <-u.done:
		return u.whole.Load() && u.again
	default:
	}
	late := time.NewTimer(lastRead)
	defer late.Stop()
	select {
	case <-u.done:
	case <-late.C:
		return false
	}
	return u.whole.Load() && u.again
}

// stopUpload ends the upload, with the connection to the app unless all was sent.
func (t *transfer) stopUpload() {
	u := t.upload
	if u == nil {
		return
	}
	select {
	case <-u.done:
		return
	default:
	}
	t.mu.Lock()
	if t.link != nil {
		_ = t.link.conn.Close()
	}
	t.mu.Unlock()
	_ = t.conn.bound(past)
	<-u.done
	_ = t.conn.bound(time.Time{})
}

// uploaded reports whether all of the request was sent.
func (t *transfer) uploaded() bool {
	u := t.upload
	if u == nil {
		return t.body.whole
	}
	select {
	case <-u.done:
		return u.whole.Load()
	default:
		return false
	}
}

// afterAnswer sends the rest of a request whose answer has ended: an app may read on. It reports whether the
// client's connection goes on.
func (r *relaying) afterAnswer(closes bool) (goesOn bool) {
	if closes {
		r.conn.closeWrite() // which may be the end of the answer
	}
	if r.upload != nil {
		r.again = r.awaitUpload() && r.again
		if r.uploaded() {
			r.disconnect(r.link, r.again)
			return !closes
		}
	}
	r.stopUpload()
	r.unwatch()
	r.conn.closeWrite()
	r.drop(time.Now().Add(restTime), 1<<62)
	return false
}

// awaitUpload waits until the upload has ended, with the connection to the app at the latest. One that the app
// has only closed in its direction has a moment for the rest. It reports whether the app has said
// nothing.
func (r *relaying) awaitUpload() (silent bool) {
	l, u := r.link, r.upload
	ended := make(chan struct{})
	_ = l.conn.SetReadDeadline(time.Time{})
	go func() {
		defer close(ended)
		<-u.done
		_ = l.conn.SetReadDeadline(past)
	}()
	silent = true
	var err error
	for err == nil {
		var more [1]byte
		_, err = l.io.Read(more[:])
		silent = silent && errors.Is(err, os.ErrDeadlineExceeded)
	}
	if errors.Is(err, io.EOF) {
		late := time.NewTimer(restTime)
		defer late.Stop()
		select {
		case <-u.done:
		case <-late.C:
		}
	}
	r.stopUpload()
	<-ended
	return silent
}
