package framing

import (
	"bufio"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/weir-dev/weir/internal/sidecar/membudget"
)

// serveApart serves HTTP/2 by a function that answers with what came behind the preface, up to
// the end of a line.
func serveApart(t *testing.T, memory *membudget.Budget) (address string) {
	t.Helper()
	s := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.WriteString(w, r.Method)
	}))
	s.Listener = listen(s.Listener, func() {}, memory.Port(true), time.Hour, func(c net.Conn, _ *membudget.Connection, rest []byte) {
		defer c.Close()
		line, _ := bufio.NewReader(io.MultiReader(strings.NewReader(string(rest)), c)).ReadString('\n')
		_, _ = io.WriteString(c, "heard "+line)
	})
	s.Config.ConnContext, s.Config.ConnState = Context, State
	s.Config.ReadHeaderTimeout = time.Minute
	s.Start()
	t.Cleanup(s.Close)
	return s.Listener.Addr().String()
}

// TestHTTP2IsServedApart, however its first bytes are split, and nothing else is.
func TestHTTP2IsServedApart(t *testing.T) {
	address := serveApart(t, membudget.New(1<<30))
	const get, odd = "GET / HTTP/1.1\r\nHost: a\r\n\r\n", "PRIME / HTTP/1.1\r\nHost: a\r\n\r\n"
	for name, tc := range map[string]struct{ said, want string }{
		"HTTP/2":                     {preface + "frames\n", "heard frames\n"},
		"HTTP/1.1":                   {get, "GET"},
		"a method that begins alike": {odd, "PRIME"},
		"a request line that is":     {"PRI * HTTP/2.0\r\nHost: a\r\n\r\n", "400 Bad Request"},
		"no end of the preface":      {preface[:18] + "XX\r\n\r\n", "400 Bad Request"},
	} {
		t.Run(name, func(t *testing.T) {
			for split := range tc.said {
				c, err := new(net.Dialer).DialContext(t.Context(), "tcp", address)
				if err != nil {
					t.Fatal(err)
				}
				_ = c.SetDeadline(time.Now().Add(time.Minute))
				_, _ = io.WriteString(c, tc.said[:split])
				_, _ = io.WriteString(c, tc.said[split:])
				_ = c.(*net.TCPConn).CloseWrite()
				all, err := io.ReadAll(c)
				if err != nil || !strings.Contains(string(all), tc.want) {
					t.Fatalf("split at %d: got %q, %v, want %q", split, all, err, tc.want)
				}
				c.Close()
			}
		})
	}
}

// TestHTTP2WithoutRoomIsSentAway by a GOAWAY.
func TestHTTP2WithoutRoomIsSentAway(t *testing.T) {
	address := serveApart(t, membudget.New(membudget.ConnectionBytes*3/2))
	c, err := new(net.Dialer).DialContext(t.Context(), "tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	_ = c.SetDeadline(time.Now().Add(time.Minute))
	_, _ = io.WriteString(c, preface+"frames\n")
	wantGoAway(t, c, 0)
}
