package proxy_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weir-dev/weir/internal/sidecar/enforce"
	"github.com/weir-dev/weir/internal/sidecar/pools"
	"github.com/weir-dev/weir/internal/sidecar/proxy"
	"github.com/weir-dev/weir/pkg/concurrency"
	"github.com/weir-dev/weir/pkg/policy"
)

// noSlot is a pool that is full.
type noSlot struct{}

func (noSlot) Acquire(*http.Request) (pools.Slot, *pools.Refusal) {
	p := fixed(1)
	return pools.Slot{}, &pools.Refusal{Pool: &p, Verdict: concurrency.Full, Limit: 1}
}

// TestARefusalDoesNotWaitForTheBody: a client reads it before it sends the rest. Where the
// connection is kept it serves the next request, and else it ends.
func TestARefusalDoesNotWaitForTheBody(t *testing.T) {
	const next = "GET /next HTTP/1.1\r\nHost: a\r\n\r\n"
	response := policy.Response{StatusCode: http.StatusTooManyRequests}
	broken := func(*http.Request) (enforce.Verdict, error) { panic("a defect") }
	for name, tc := range map[string]struct {
		pool   proxy.Pool
		judge  decider
		head   string
		status int
		closes bool
	}{
		"a limit":         {noPool{}, refusing(response), "POST / HTTP/1.1\r\nHost: a\r\n", 429, false},
		"HTTP/1.0, kept":  {noPool{}, refusing(response), "POST / HTTP/1.0\r\nHost: a\r\nConnection: keep-alive\r\n", 429, false},
		"of gRPC":         {noPool{}, refusing(response), "POST / HTTP/1.1\r\nHost: a\r\nContent-Type: application/grpc\r\n", 200, false},
		"no slot":         {noSlot{}, admit, "POST / HTTP/1.1\r\nHost: a\r\n", 503, false},
		"a defect":        {noPool{}, broken, "POST / HTTP/1.1\r\nHost: a\r\n", 500, false},
		"a dead app":      {noPool{}, admit, "POST / HTTP/1.1\r\nHost: a\r\n", 502, false},
		"malformed":       {noPool{}, admit, "POST /a\\b HTTP/1.1\r\nHost: a\r\n", 400, true},
		"an expectation":  {noPool{}, admit, "POST / HTTP/1.1\r\nHost: a\r\nExpect: y 100-continue\r\n", 417, true},
		"the client asks": {noPool{}, refusing(response), "POST / HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\n", 429, true},
		"the client ends": {noPool{}, refusing(response), "POST / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n", 429, true},
	} {
		for coding, body := range map[string][3]string{
			"Content-Length": {"Content-Length: 10\r\n\r\n", "hello", "world"},
			"chunked":        {"Transfer-Encoding: chunked\r\n\r\n", "5\r\nhel", "lo\r\n0\r\n\r\n"},
		} {
			if coding == "chunked" && strings.Contains(tc.head, "HTTP/1.0") {
				continue
			}
			t.Run(name+", "+coding, func(t *testing.T) {
				conn, in := connect(t, serveProxy(t, newProxy(t, "127.0.0.1:1", tc.pool, tc.judge)))
				write(t, conn, tc.head+body[0]+body[1])
				res := read(t, in)
				if res.StatusCode != tc.status {
					t.Fatalf("answered with %s, want %d", res.Status, tc.status)
				}
				if tc.closes {
					if _, err := in.ReadByte(); !res.Close || !errors.Is(err, io.EOF) {
						t.Errorf("said to be closed: %t, and read: %v", res.Close, err)
					}
					return
				}
				write(t, conn, body[2]+next)
				if after := read(t, in); res.Close || after.StatusCode == http.StatusBadRequest {
					t.Errorf("the next request is answered with %s", after.Status)
				}
			})
		}
	}
}

// TestARefusalOfALargeBodyIsRead by a client that sends all before it reads.
func TestARefusalOfALargeBodyIsRead(t *testing.T) {
	const size = 4 << 20
	sent := strings.Repeat("x", size)
	for coding, request := range map[string]string{
		"Content-Length": fmt.Sprintf("Content-Length: %d\r\n\r\n%s", size, sent),
		"chunked":        fmt.Sprintf("Transfer-Encoding: chunked\r\n\r\n%x\r\n%s\r\n0\r\n\r\n", size, sent),
	} {
		t.Run(coding, func(t *testing.T) {
			conn, in := connect(t, serveProxy(t, newProxy(t, "127.0.0.1:1", noSlot{}, decider(admit))))
			write(t, conn, "POST / HTTP/1.1\r\nHost: a\r\n"+request)
			if res := read(t, in); res.StatusCode != http.StatusServiceUnavailable {
				t.Errorf("answered with %s", res.Status)
			}
			if _, err := in.ReadByte(); !errors.Is(err, io.EOF) {
				t.Errorf("then read %v, want the end", err)
			}
		})
	}
}

// TestARefusedBodyOf256KiBEndsNoConnection.
func TestARefusedBodyOf256KiBEndsNoConnection(t *testing.T) {
	conn, in := connect(t, serveProxy(t, newProxy(t, "127.0.0.1:1", noSlot{}, decider(admit))))
	for range 2 {
		write(t, conn, "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 262144\r\n\r\n"+strings.Repeat("x", 256<<10))
		if res := read(t, in); res.StatusCode != http.StatusServiceUnavailable || res.Close {
			t.Fatalf("answered with %s, said to be closed: %t", res.Status, res.Close)
		}
	}
}

// TestTheRestOfARefusedBodyHasFiveSeconds, and nothing that comes later is a request.
func TestTheRestOfARefusedBodyHasFiveSeconds(t *testing.T) {
	for name, target := range map[string]string{"kept": "/", "closed": "/a\\b"} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				l := &pipes{accepted: make(chan net.Conn), closed: make(chan struct{})}
				serveOn(t, newProxy(t, "127.0.0.1:1", noSlot{}, decider(admit)), l, unbounded())
				ours, theirs := net.Pipe()
				defer ours.Close()
				l.accepted <- theirs
				write(t, ours, "POST "+target+" HTTP/1.1\r\nHost: a\r\nContent-Length: 100\r\n\r\nhello")
				in := bufio.NewReader(ours)
				read(t, in)
				began := time.Now()
				if _, err := in.ReadByte(); !errors.Is(err, io.EOF) {
					t.Errorf("read %v, want the end", err)
				}
				if waited := time.Since(began); waited != 5*time.Second {
					t.Errorf("closed after %v", waited)
				}
			})
		})
	}
}

// pipes is a listener of connections that a test makes.
type pipes struct {
	accepted chan net.Conn
	closed   chan struct{}
}

func (p *pipes) Accept() (net.Conn, error) {
	select {
	case c := <-p.accepted:
		return c, nil
	case <-p.closed:
		return nil, net.ErrClosed
	}
}

func (p *pipes) Close() error {
	close(p.closed)
	return nil
}

func (p *pipes) Addr() net.Addr { return &net.TCPAddr{} }

func connect(t *testing.T, address string) (net.Conn, *bufio.Reader) {
	t.Helper()
	conn, err := new(net.Dialer).DialContext(context.WithoutCancel(t.Context()), "tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	_ = conn.SetDeadline(time.Now().Add(30 * time.Second)) // instead of hanging
	return conn, bufio.NewReader(conn)
}

func write(t *testing.T, conn net.Conn, what string) {
	t.Helper()
	if _, err := io.WriteString(conn, what); err != nil {
		t.Fatal(err)
	}
}

// read reads a whole answer.
func read(t *testing.T, in *bufio.Reader) *http.Response {
	t.Helper()
	res, err := http.ReadResponse(in, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	if _, err := io.Copy(io.Discard, res.Body); err != nil {
		t.Fatal(err)
	}
	return res
}
