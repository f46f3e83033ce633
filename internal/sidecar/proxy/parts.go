package proxy

import (
	"bufio"
	"net"
	"net/http"
	"strconv"

	"github.com/weir-dev/weir/internal/sidecar/proxy/framing"
)

// parts hands an answer of the app on part by part, as it comes. The last part is sent when
// the handler returns: a client that has all of an answer may rely on what comes with its end, such
// as a slot that is free again. One goroutine at a time calls the methods.
type parts struct {
	http.ResponseWriter
	request *http.Request // as it came
	body    *inbound      // of the request; nil for none that is answered while it is read
	passing bool          // the answer is the app's
	refused bool          // there was none, and we answered
	chunked bool          // it is sent in chunks
	left    int64         // of its body; negative when the length is not known
}

// WriteHeader implements http.ResponseWriter.
func (a *parts) WriteHeader(status int) {
	if status == http.StatusContinue && a.body != nil && a.body.held && a.body.twice {
		return
	}
	h := a.Header()
	leaveUntyped(h, status)
	a.chunked = hasBody(a.request, status) && h["Content-Length"] == nil && a.request.ProtoMajor == 1 && a.request.ProtoMinor > 0
	a.left = -1
	if length, err := strconv.ParseInt(h.Get("Content-Length"), 10, 64); err == nil {
		a.left = length
	}
	a.ResponseWriter.WriteHeader(status)
}

// Write implements http.ResponseWriter. A part that is not the last one is sent at once.
func (a *parts) Write(p []byte) (int, error) {
	if a.chunked {
		framing.Between(a.request.Context(), false)
	}
	n, err := a.ResponseWriter.Write(p)
	if a.left > 0 {
		a.left -= int64(n)
	}
	if err == nil && a.passing && a.left != 0 {
		err = a.FlushError()
	}
	return n, err
}

// FlushError sends what was written; see http.ResponseController.
func (a *parts) FlushError() error {
	err := http.NewResponseController(a.ResponseWriter).Flush()
	if a.chunked && err == nil {
		framing.Between(a.request.Context(), true)
	}
	return err //nolint:wrapcheck // of the server
}

// end says that no part follows.
func (a *parts) end() {
	if a.chunked {
		framing.Between(a.request.Context(), false)
	}
}

func (a *parts) refuse() { a.refused, a.passing = true, false }

// Unwrap returns the writer that an http.ResponseController finds the rest in.
func (a *parts) Unwrap() http.ResponseWriter { return a.ResponseWriter }

// A slotless is the answer to a request that holds no slot; see flight for those that do.
type slotless struct{ parts }

// Hijack implements http.Hijacker.
func (s *slotless) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	return hijack(s.ResponseWriter, s.request)
}

// hasBody reports whether an answer of that status has a body (RFC 9112, section 6.3).
func hasBody(r *http.Request, status int) bool {
	return r.Method != http.MethodHead && status >= http.StatusOK && status != http.StatusNoContent && status != http.StatusNotModified
}
