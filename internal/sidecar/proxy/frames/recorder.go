package frames

import (
	"net/http"
	"strconv"
	"time"

	"golang.org/x/net/http2/hpack"
)

// A recorder keeps an answer of the sidecar's own, which is short.
type recorder struct {
	header http.Header
	status int
	body   []byte
}

// Header implements http.ResponseWriter.
func (w *recorder) Header() http.Header {
	if w.header == nil {
		w.header = http.Header{}
	}
	return w.header
}

// WriteHeader implements http.ResponseWriter.
func (w *recorder) WriteHeader(status int) {
	if w.status == 0 {
		w.status = status
	}
}

// Write implements http.ResponseWriter.
func (w *recorder) Write(p []byte) (int, error) {
	w.WriteHeader(http.StatusOK)
	w.body = append(w.body, p...)
	return len(p), nil
}

// fields returns the head of the answer.
func (w *recorder) fields() []hpack.HeaderField {
	w.WriteHeader(http.StatusOK)
	h := w.Header()
	if h["Date"] == nil {
		h.Set("Date", time.Now().UTC().Format(http.TimeFormat))
	}
	return appendFields([]hpack.HeaderField{field(":status", strconv.Itoa(w.status))}, h)
}
