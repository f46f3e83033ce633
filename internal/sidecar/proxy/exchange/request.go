package exchange

import (
	"errors"
	"net/http"
)

// ErrBody is returned by reads of a Body.
var ErrBody = errors.New("the body of a request passes without its handler")

// A Body says that a request has one. It cannot be read.
type Body struct{}

// Read implements io.Reader.
func (Body) Read([]byte) (int, error) { return 0, ErrBody }

// Close implements io.Closer.
func (Body) Close() error { return nil }

// KeptBytes is how much of a body is kept to be sent again.
const KeptBytes = 4 << 10

// Repeats reports whether a request does no harm when the app sees it twice: by a method that
// only asks, or because its sender says so.
func Repeats(r *http.Request) bool {
	switch r.Method {
	case http.MethodGet, http.MethodHead, http.MethodOptions, http.MethodTrace:
		return true
	}
	return r.Header["Idempotency-Key"] != nil || r.Header["X-Idempotency-Key"] != nil
}
