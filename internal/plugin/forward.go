package plugin

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/portforward"
	"k8s.io/client-go/transport/spdy"
	"k8s.io/streaming/pkg/httpstream"
)

// A tunnel leads to a port of the loopback interface of a pod, as kubectl port-forward does,
// without opening a port on this machine.
type tunnel struct {
	streams httpstream.Connection
	port    int

	mu   sync.Mutex
	last int // number of the newest pair of streams
}

// openTunnel asks the API server for a tunnel, which may take until ctx is done. That needs the verb
// create on pods/portforward.
func openTunnel(ctx context.Context, config *rest.Config, pod *corev1.Pod, port int) (*tunnel, error) {
	core := rest.CopyConfig(config)
	core.APIPath, core.GroupVersion = "/api", &corev1.SchemeGroupVersion
	server, path, err := rest.DefaultServerUrlFor(core)
	if err != nil {
		return nil, err
	}
	url := server.JoinPath(path, "namespaces", pod.Namespace, "pods", pod.Name, "portforward")
	overWebSocket, err := portforward.NewSPDYOverWebsocketDialerForStreaming(url, core)
	if err != nil {
		return nil, err
	}
	transport, upgrader, err := spdy.RoundTripperFor(core)
	if err != nil {
		return nil, err
	}
	plain := spdy.NewDialerForStreaming(upgrader, &http.Client{Transport: transport}, http.MethodPost, url)
	// An old API server, or a proxy before it, may know only the latter.
	dialer := portforward.NewFallbackDialerForStreaming(overWebSocket, plain, func(err error) bool {
		return httpstream.IsUpgradeFailure(err) || httpstream.IsHTTPSProxyError(err)
	})
	opened, failed := make(chan *tunnel), make(chan error, 1)
	go func() { // no dialer takes a context
		streams, _, err := dialer.Dial(portforward.PortForwardProtocolV1Name)
		if err != nil {
			failed <- err
			return
		}
		t := &tunnel{streams: streams, port: port}
		select {
		case opened <- t:
		case <-ctx.Done():
			_ = t.close() // nobody asks through it
		}
	}()
	select {
	case t := <-opened:
		return t, nil
	case err := <-failed:
		return nil, err
	case <-ctx.Done():
		return nil, fmt.Errorf("%w: the API server has no way to the node of the pod", context.Cause(ctx))
	}
}

// client returns a client whose connections go through the tunnel, whatever a URL names.
func (t *tunnel) client() *http.Client {
	return &http.Client{Transport: &http.Transport{
		DialContext: func(context.Context, string, string) (net.Conn, error) { return t.dial() },
	}}
}

func (t *tunnel) close() error { return t.streams.Close() }

// dial opens a connection: a stream of bytes, and one by which the node reports why there is
// none.
func (t *tunnel) dial() (net.Conn, error) {
	t.mu.Lock()
	t.last++
	number := t.last
	t.mu.Unlock()
	header := http.Header{}
	header.Set(corev1.PortHeader, strconv.Itoa(t.port))
	header.Set(corev1.PortForwardRequestIDHeader, strconv.Itoa(number))
	header.Set(corev1.StreamType, corev1.StreamTypeError)
	failures, err := t.streams.CreateStream(header)
	if err != nil {
		return nil, err
	}
	if err := failures.Close(); err != nil { // nothing is written to it
		return nil, err
	}
	header.Set(corev1.StreamType, corev1.StreamTypeData)
	data, err := t.streams.CreateStream(header)
	if err != nil {
		return nil, err
	}
	c := &forwarded{Stream: data, failure: make(chan string, 1), closed: make(chan struct{})}
	go func() {
		text, err := io.ReadAll(io.LimitReader(failures, maxFailure))
		if err == nil {
			c.failure <- string(text)
		}
	}()
	return c, nil
}

// maxFailure bounds the report of a node, in bytes.
const maxFailure = 4 << 10

// forwarded is a connection through a tunnel.
type forwarded struct {
	httpstream.Stream

	failure chan string // why the node has no connection, empty at the end of one
	once    sync.Once
	closed  chan struct{}
}

// Read reads from the pod. At the end it returns the failure that the node reports, if any.
func (c *forwarded) Read(p []byte) (int, error) {
	n, err := c.Stream.Read(p)
	if !errors.Is(err, io.EOF) || n > 0 {
		return n, err
	}
	select {
	case text := <-c.failure:
		if text != "" {
			return 0, fmt.Errorf("the node reports: %s", text)
		}
		return 0, io.EOF
	case <-c.closed:
		return 0, net.ErrClosed
	}
}

// Close ends the connection in both directions.
func (c *forwarded) Close() error {
	c.once.Do(func() { close(c.closed) })
	return c.Reset()
}

// LocalAddr returns the zero address.
func (c *forwarded) LocalAddr() net.Addr { return &net.TCPAddr{} }

// RemoteAddr returns the zero address.
func (c *forwarded) RemoteAddr() net.Addr { return &net.TCPAddr{} }

// SetDeadline does nothing: a request ends with its context, which closes the connection.
func (c *forwarded) SetDeadline(time.Time) error { return nil }

// SetReadDeadline does nothing.
func (c *forwarded) SetReadDeadline(time.Time) error { return nil }

// SetWriteDeadline does nothing.
func (c *forwarded) SetWriteDeadline(time.Time) error { return nil }
