package exchange

import "net/http"

// A Recorder keeps an answer of the sidecar's own, which is short.
type Recorder struct {
	Status int // 0 before the answer
	Body   []byte
	header http.Header
}

// Header implements http.ResponseWriter.
func (w *Recorder) Header() http.Header {
	if w.header == nil {
		w.header = http.Header{}
	}
	return w.header
}

// WriteHeader implements http.ResponseWriter.
func (w *Recorder) WriteHeader(status int) {
	if w.Status == 0 {
		w.Status = status
	}
}

// Write implements http.ResponseWriter.
func (w *Recorder) Write(p []byte) (int, error) {
	w.WriteHeader(http.StatusOK)
	w.Body = append(w.Body, p...)
	return len(p), nil
}
