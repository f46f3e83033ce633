package proxy

import (
	"bufio"
	"context"
	"net"
	"net/http"
	"slices"

	"github.com/weir-dev/weir/internal/sidecar/proxy/framing"
)

// hijack takes the connection of a request for a tunnel, which ends with the request.
// httputil.ReverseProxy then closes the app's connection only, and waits for a client
// that is silent or does not read for as long as it pleases. It does not look into the
// buffer either, where the first frame is of a client that did not wait for the answer.
func hijack(w http.ResponseWriter, r *http.Request) (net.Conn, *bufio.ReadWriter, error) {
	conn, buffered, err := http.NewResponseController(w).Hijack()
	if err != nil {
		return nil, nil, err //nolint:wrapcheck // ReverseProxy says what it was for
	}
	framing.Tunnel(r.Context())
	context.AfterFunc(r.Context(), func() { _ = conn.Close() })
	if n := buffered.Reader.Buffered(); n > 0 {
		first, _ := buffered.Reader.Peek(n)
		conn = &begun{Conn: conn, first: slices.Clone(first)}
	}
	return conn, buffered, nil
}

// A begun is a tunnel whose first bytes were read already. One reads at a time.
type begun struct {
	net.Conn
	first []byte
}

// Read implements net.Conn.
func (b *begun) Read(p []byte) (int, error) {
	if len(b.first) == 0 {
		return b.Conn.Read(p) //nolint:wrapcheck // of the connection
	}
	n := copy(p, b.first)
	b.first = b.first[n:]
	return n, nil
}

// CloseWrite ends what is sent to the client.
func (b *begun) CloseWrite() error {
	if half, ok := b.Conn.(interface{ CloseWrite() error }); ok {
		return half.CloseWrite() //nolint:wrapcheck // of the connection
	}
	return nil
}
