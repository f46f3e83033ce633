package proxy

import (
	"errors"
	"io"
	"net/http"
	"sync/atomic"
	"time"
)

// keptBytes is how much of a body is kept to be sent again: what an http.Transport reads of
// it before it writes anything, which is behind the header in a buffer of 4 KiB.
const keptBytes = 4 << 10

// A body is that of a request to the app. It can be sent over another connection as long
// as all that was read of it for the first is kept; see sending.lost. One reads at a time.
type body struct {
	io.ReadCloser
	reads   interrupter                // what the client sends
	ended   func() bool                // whether the client has left, or what it sent is malformed
	trailer http.Header                // complete when all was read
	passes  bool                       // trailers with underscores in their names
	kept    []byte                     // all that was read
	read    int                        // of what is kept
	lost    atomic.Bool                // more was read than is kept
	over    atomic.Bool                // a read came to its end, or failed
	left    atomic.Bool                // by the app, before that and before it answered
	again   atomic.Bool                // it may be sent over another connection, whatever of it was written
	late    atomic.Pointer[time.Timer] // ends its read; nil unless its connection has ended
}

// An interrupter ends a read that goes on, so that the next one fails, too.
type interrupter interface{ interrupt() }

// A bodyError is why the rest of a request's body cannot be read: its client broke it off, or
// framed it wrongly.
type bodyError struct{ error }

// Unwrap returns the cause.
func (e *bodyError) Unwrap() error { return e.error }

var errLost = errors.New("more of the request's body was sent than is kept")

// sendAgain lets the body of the outgoing request r, which came in by in, be sent once more.
// passes says whether trailers with underscores in their names pass.
func sendAgain(r, in *http.Request, passes bool) {
	if r.Body == nil || r.Body == http.NoBody {
		return
	}
	b := &body{ReadCloser: r.Body, trailer: r.Trailer, passes: passes}
	b.reads, _ = in.Body.(interrupter)
	b.ended = func() bool { return in.Context().Err() != nil }
	r.Body = b
	r.GetBody = func() (io.ReadCloser, error) {
		if b.lost.Load() {
			return nil, errLost
		}
		b.read = 0
		return b, nil
	}
}

// Read implements io.Reader.
func (b *body) Read(p []byte) (int, error) {
	if b.read < len(b.kept) {
		n := copy(p, b.kept[b.read:])
		b.read += n
		return n, nil
	}
	n, err := b.ReadCloser.Read(p)
	if err != nil {
		b.over.Store(true)
	}
	switch {
	case errors.Is(err, io.EOF):
		withoutOwn(b.trailer)
		if !b.passes {
			withoutUnderscores(b.trailer)
		}
	case err != nil:
		err = &bodyError{err}
	}
	switch {
	case b.lost.Load():
	case len(b.kept)+n > keptBytes:
		b.lost.Store(true)
		b.kept, b.read = nil, 0
	default:
		b.kept = append(b.kept, p[:n]...)
		b.read = len(b.kept)
	}
	return n, err
}

// Close implements io.Closer. A body that may be sent over another connection stays open;
// the server that it came from closes it in the end.
func (b *body) Close() error {
	if !b.lost.Load() {
		return nil
	}
	return b.ReadCloser.Close()
}

// abandon ends a read of a body that is not sent on. One that may be sent again gets a moment
// more: its rest is mostly on its way, and the read cannot be taken up again.
func (b *body) abandon() {
	if b.again.Load() && !b.lost.Load() {
		b.late.Store(time.AfterFunc(lastRead, b.leave))
		return
	}
	b.leave()
}

// stay says that the body is sent on, or of no use any more.
func (b *body) stay() {
	if late := b.late.Swap(nil); late != nil {
		late.Stop()
	}
}

// leave ends the read. A connection that was closed on account of the client is not one that
// the app has left.
func (b *body) leave() {
	if b.reads != nil && !b.over.Load() && !b.ended() {
		b.left.Store(true)
		b.reads.interrupt()
	}
}

// settle says that the request was answered, so that its body is not sent again.
func (b *body) settle() { b.lost.Store(true) }

// lastRead is how long the end of an answer, or of a connection that had none, waits for a
// read of the request's body.
const lastRead = 50 * time.Millisecond
