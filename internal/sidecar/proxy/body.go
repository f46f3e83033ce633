package proxy

import (
	"errors"
	"io"
	"net/http"
	"sync/atomic"
)

// keptBytes is how much of a body is kept to be sent again: what an http.Transport reads of
// it before it writes anything, which is behind the header in a buffer of 4 KiB.
const keptBytes = 4 << 10

// A body is that of a request to the app. It can be sent over another connection as long
// as all that was read of it for the first is kept: net/http asks for that when nothing of
// the request was written, or when it does no harm twice. One reads at a time.
type body struct {
	io.ReadCloser
	trailer http.Header // complete when all was read
	kept    []byte      // all that was read
	read    int         // of what is kept
	lost    atomic.Bool // more was read than is kept
}

// A bodyError is why the rest of a request's body cannot be read: its client broke it off, or
// framed it wrongly.
type bodyError struct{ error }

// Unwrap returns the cause.
func (e *bodyError) Unwrap() error { return e.error }

var errLost = errors.New("more of the request's body was sent than is kept")

// sendAgain lets the body of an outgoing request be sent once more.
func sendAgain(r *http.Request) {
	if r.Body == nil || r.Body == http.NoBody {
		return
	}
	b := &body{ReadCloser: r.Body, trailer: r.Trailer}
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
	switch {
	case errors.Is(err, io.EOF):
		withoutOwn(b.trailer)
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

// Close implements io.Closer. What may be sent over another connection stays open; the
// server that it came from closes it in the end.
func (b *body) Close() error {
	if !b.lost.Load() {
		return nil
	}
	return b.ReadCloser.Close()
}
