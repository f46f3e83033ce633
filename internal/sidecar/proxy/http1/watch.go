package http1

import (
	"errors"
	"io"
	"time"

	"github.com/weir-dev/weir/internal/sidecar/proxy/exchange"
	"github.com/weir-dev/weir/internal/sidecar/proxy/framing"
)

// patience is how long a request may take before its client is watched.
const patience = 10 * time.Millisecond

// How often it is looked whether a client that sends nothing more still waits for an answer:
// soon at first, since most that do not have left.
const (
	firstLook = 5 * time.Millisecond
	lastLook  = 250 * time.Millisecond
)

// past is a deadline that ends a read.
var past = time.Unix(1, 0)

// A watch is a goroutine that looks after the client of a slow request. It reads what the client
// sends, for the next request, as far as the buffer has room for it.
type watch struct {
	stop chan struct{}
	done chan struct{}
}

// look begins to watch the client, if nothing else reads from it and the request goes on.
func (t *transfer) look() {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.over || !t.waits || t.watch != nil || t.upload != nil && !t.upload.whole.Load() {
		return
	}
	t.watch = &watch{stop: make(chan struct{}), done: make(chan struct{})}
	go t.watch.run(t)
}

// wait says that the client may be watched from now on.
func (t *transfer) wait() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.waits = true
}

// unwatch ends the watch.
func (t *transfer) unwatch() {
	t.mu.Lock()
	w := t.watch
	t.waits = false
	t.mu.Unlock()
	if w == nil {
		return
	}
	close(w.stop)
	_ = t.conn.bound(past)
	<-w.done
	_ = t.conn.bound(time.Time{})
	t.mu.Lock()
	t.watch = nil
	t.mu.Unlock()
}

// stopped reports whether the watch is to end.
func (w *watch) stopped() bool {
	select {
	case <-w.stop:
		return true
	default:
		return false
	}
}

func (w *watch) run(t *transfer) {
	defer close(w.done)
	c := t.conn
	if c.SetReadDeadline(time.Time{}) != nil { // unwatch sets another one behind it
		t.cancel(exchange.Left)
		return
	}
	for !w.stopped() && c.in.to < len(c.in.buf) {
		_, err := c.in.fill(c)
		switch {
		case err == nil:
		case w.stopped():
			return
		case errors.Is(err, io.EOF) && t.body.whole && framing.CanWatch(c.Conn):
			w.linger(t)
			return
		default:
			t.cancel(exchange.Left)
			return
		}
	}
}

// linger waits until a client that has closed its sending side has its answer, or has left.
//
// A client may close its sending side behind a request and wait for the answer (RFC 9112,
// section 9.6). One that has left looks alike, and its request is to end. The two differ
// once something is sent: a client that left resets the connection. So the first byte of
// the answer, which is the same for all, is sent ahead of the rest. Where the answer has
// begun and is between two chunks, that is a zero in front of the next one's size (RFC 9112,
// section 7.1). Elsewhere the next part of the answer shows it.
func (w *watch) linger(t *transfer) {
	for pause := firstLook; ; pause = min(2*pause, lastLook) {
		if t.conn.out.tryAhead() != nil {
			t.cancel(exchange.Left)
			return
		}
		look := time.NewTimer(pause)
		select {
		case <-w.stop:
			look.Stop()
			return
		case <-look.C:
		}
		if framing.IsReset(t.conn.Conn) {
			t.cancel(exchange.Left)
			return
		}
	}
}
