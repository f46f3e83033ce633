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
