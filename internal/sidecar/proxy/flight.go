package proxy

import (
	"bufio"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"strings"
	"sync/atomic"

	"github.com/weir-dev/weir/internal/sidecar/pools"
	"github.com/weir-dev/weir/pkg/concurrency"
)

// A flight is a request that holds a slot, up to the end of its answer. It stands
// between the app's answer and the client, and sees what becomes of the request.
type flight struct {
	parts
	slot pools.Slot

	forwarded *http.Request // nil before
	answered  bool          // to the end
	failed    bool          // there was no answer to pass on
	lost      bool          // the client does not take the answer
	tunnel    bool          // the connection became one
	status    int
	upload    upload
}

var errFenced = errors.New("the pod's share of the pool expired")

// takeOff prepares r to be forwarded now; done is to be called when it was.
func (f *flight) takeOff(r *http.Request) (_ *http.Request, done func()) {
	if r.Body != nil && r.Body != http.NoBody {
		f.upload.ReadCloser = r.Body
		r = r.WithContext(r.Context()) // net/http looks at the body of its own request
		r.Body = &f.upload
	}
	done = func() {}
	first := true
	for held := &f.slot; held != nil; held = held.Next() {
		fenced := held.Fenced()
		if fenced == nil {
			continue
		}
		ending, ended := endOn(fenced, r)
		if r = ending; first {
			first, done = false, ended // which ends those of the other pools, too
		}
	}
	f.forwarded = r
	f.slot.Forward()
	return r, done
}

// endOn returns r with a context that ends when the share expires. It has ended when
// the share did while the request waited for its limits.
func endOn(fenced <-chan struct{}, r *http.Request) (_ *http.Request, done func()) {
	ctx, cancel := context.WithCancelCause(r.Context())
	select {
	case <-fenced:
		cancel(errFenced)
	default:
		go func() {
			select {
			case <-fenced:
				cancel(errFenced)
			case <-ctx.Done():
			}
		}()
	}
	return r.WithContext(ctx), func() { cancel(nil) }
}

// land gives the slot back, however the request ended.
func (f *flight) land() { f.slot.Release(f.outcome()) }

// outcome returns what the request shows about the load of the app. Its latency is that
// of the whole answer. How long a tunnel or a stream of events is open is up to its two
// ends, so it shows nothing. Neither does a request that we or the client ended.
func (f *flight) outcome() concurrency.Outcome {
	switch {
	case f.failed:
		return concurrency.Dropped
	case f.forwarded == nil, f.gone(), f.tunnel, f.streams():
		return concurrency.Ignored
	case !f.answered:
		return concurrency.Dropped
	}
	return f.judgement()
}

// gone reports whether the request ended before its time and not on the app's account. A
// client that has all of its answer may leave before that is noted.
func (f *flight) gone() bool {
	return f.lost || f.upload.lost.Load() || !f.answered && f.request.Context().Err() != nil ||
		errors.Is(context.Cause(f.forwarded.Context()), errFenced)
}

// streams reports whether the answer goes on for as long as there is something to say.
func (f *flight) streams() bool {
	return strings.HasPrefix(f.Header().Get("Content-Type"), "text/event-stream")
}

// judgement is what the app says of itself.
func (f *flight) judgement() concurrency.Outcome {
	if busy(f.status) {
		return concurrency.Dropped
	}
	return concurrency.Served
}

// WriteHeader implements http.ResponseWriter.
func (f *flight) WriteHeader(status int) {
	if status >= http.StatusOK {
		f.status = status
	}
	f.parts.WriteHeader(status)
}

// Write implements http.ResponseWriter.
func (f *flight) Write(p []byte) (int, error) {
	n, err := f.parts.Write(p)
	f.lost = f.lost || err != nil
	return n, err
}

// Hijack implements http.Hijacker.
func (f *flight) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	f.tunnel = true
	return hijack(f.ResponseWriter, f.forwarded)
}

// An upload is the body of a request. The connection to the app reads it, even after
// the request was answered.
type upload struct {
	io.ReadCloser
	lost atomic.Bool // the client did not send all of it, or not as it should
}

// Read implements io.Reader.
func (u *upload) Read(p []byte) (int, error) {
	n, err := u.ReadCloser.Read(p)
	if err != nil && !errors.Is(err, io.EOF) && !errors.Is(err, http.ErrBodyReadAfterClose) {
		u.lost.Store(true)
	}
	return n, err
}

// interrupt ends a read.
func (u *upload) interrupt() {
	if s, ok := u.ReadCloser.(interrupter); ok {
		s.interrupt()
	}
}
