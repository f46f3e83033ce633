package proxy

import (
	"bufio"
	"context"
	"net"
	"net/http"

	"github.com/weir-dev/weir/internal/sidecar/proxy/framing"
)

// hijack takes the connection of a request for a tunnel, which ends with the request.
// httputil.ReverseProxy then closes the app's connection only, and waits for a client
// that is silent or does not read for as long as it pleases.
func hijack(w http.ResponseWriter, r *http.Request) (net.Conn, *bufio.ReadWriter, error) {
	conn, buffered, err := http.NewResponseController(w).Hijack()
	if err != nil {
		return nil, nil, err //nolint:wrapcheck // ReverseProxy says what it was for
	}
	framing.Tunnel(r.Context())
	context.AfterFunc(r.Context(), func() { _ = conn.Close() })
	return conn, buffered, nil
}

// A slotless is the answer to a request that holds no slot; see flight for those that do.
type slotless struct {
	http.ResponseWriter
	request *http.Request
}

// WriteHeader implements http.ResponseWriter.
func (s *slotless) WriteHeader(status int) {
	leaveUntyped(s.Header(), status)
	s.ResponseWriter.WriteHeader(status)
}

// Hijack implements http.Hijacker.
func (s *slotless) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	return hijack(s.ResponseWriter, s.request)
}

// Unwrap returns the writer that an http.ResponseController finds the rest in.
func (s *slotless) Unwrap() http.ResponseWriter { return s.ResponseWriter }
