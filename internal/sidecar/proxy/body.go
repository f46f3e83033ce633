package proxy

import (
	"errors"
	"io"
	"net/http"
	"sync/atomic"
)

// A body is that of a request to the app. It can be sent over another connection as long
// as nothing of it was read for the first: net/http asks for that when nothing of the
// request was written.
type body struct {
	io.ReadCloser
	begun atomic.Bool
}

var errBegun = errors.New("a part of the request's body was sent already")

// sendAgain lets the body of an outgoing request be sent once more.
func sendAgain(r *http.Request) {
	if r.Body == nil || r.Body == http.NoBody {
		return
	}
	b := &body{ReadCloser: r.Body}
	r.Body = b
	r.GetBody = func() (io.ReadCloser, error) {
		if b.begun.Load() {
			return nil, errBegun
		}
		return b, nil
	}
}

// Read implements io.Reader.
func (b *body) Read(p []byte) (int, error) {
	b.begun.Store(true)
	return b.ReadCloser.Read(p)
}

// Close implements io.Closer. What was not begun stays for another connection;
// httputil.ReverseProxy closes it in the end.
func (b *body) Close() error {
	if !b.begun.Load() {
		return nil
	}
	return b.ReadCloser.Close()
}
