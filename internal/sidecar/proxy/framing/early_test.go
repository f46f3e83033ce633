package framing

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
)

const asksForWebSocket = "GET /ws HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n"

// serveUpgrades serves requests: those for a tunnel get one that ends when the client has
// sent all, and then says what it was sent, unless the server declines.
func serveUpgrades(t *testing.T, declines bool) (address string, malformed *atomic.Int64) {
	t.Helper()
	malformed = new(atomic.Int64)
	s := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if declines || r.Header.Get("Upgrade") == "" {
			_, _ = io.WriteString(w, r.URL.Path)
			return
		}
		conn, buffered, err := http.NewResponseController(w).Hijack()
		if err != nil {
			t.Error(err)
			return
		}
		defer conn.Close()
		Tunnel(r.Context())
		all, err := io.ReadAll(buffered)
		if err != nil {
			t.Error(err)
		}
		_, _ = fmt.Fprintf(conn, "HTTP/1.1 101 Switching Protocols\r\n\r\n%s", all)
	}))
	s.Listener = Listen(s.Listener, func() { malformed.Add(1) }, unbounded(), nil)
	s.Config.ConnContext, s.Config.ConnState = Context, State
	s.Start()
	t.Cleanup(s.Close)
	return s.Listener.Addr().String(), malformed
}

func connect(t *testing.T, address string) *net.TCPConn {
	t.Helper()
	conn, err := new(net.Dialer).DialContext(t.Context(), "tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	return conn.(*net.TCPConn)
}

// TestNothingOfATunnelIsJudged though it was sent with the request that opens it, and would
// be malformed as HTTP.
func TestNothingOfATunnelIsJudged(t *testing.T) {
	every := make([]byte, 256)
	for i := range every {
		every[i] = byte(i)
	}
	for name, sent := range map[string][]byte{
		"nothing":                nil,
		"one byte":               {'\n'},
		"two bytes":              {'\n', '\n'},
		"every byte":             every,
		"a request":              []byte("GET / HTTP/1.1\r\nHost: a\r\n\r\n"),
		"more than buffers hold": bytes.Repeat([]byte("\x81\x7e\n\n\r\x00"), 100_000),
	} {
		t.Run(name, func(t *testing.T) {
			address, malformed := serveUpgrades(t, false)
			conn := connect(t, address)
			go func() {
				_, _ = conn.Write(append([]byte(asksForWebSocket), sent...))
				_ = conn.CloseWrite()
			}()
			got, err := io.ReadAll(conn)
			if err != nil {
				t.Fatal(err)
			}
			if _, tunnel, _ := bytes.Cut(got, []byte("\r\n\r\n")); !bytes.Equal(tunnel, sent) {
				t.Errorf("%d bytes of %d come through the tunnel: %.100q", len(tunnel), len(sent), got)
			}
			if n := malformed.Load(); n != 0 {
				t.Errorf("%d connections count as malformed", n)
			}
		})
	}
}

// TestWhatFollowsADeclinedUpgradeIsJudged as any request.
func TestWhatFollowsADeclinedUpgradeIsJudged(t *testing.T) {
	const next = "GET /next HTTP/1.1\r\nHost: a\r\n\r\n"
	for name, tc := range map[string]struct {
		sent      string
		answers   string
		malformed int64
	}{
		"a request":                       {next, "/ws /next", 0},
		"another that asks":               {asksForWebSocket + next, "/ws /ws /next", 0},
		"a bare LF":                       {"\n" + next, "/ws refused", 1},
		"lines that end in a bare LF":     {strings.ReplaceAll(next, "\r\n", "\n"), "/ws refused", 1},
		"a frame":                         {"\x81\x85\x00\x00\x00\x00Early\r\n", "/ws refused", 1},
		"one after a request":             {next + "\x81\x01\n", "/ws /next refused", 1},
		"two lengths after one that asks": {asksForWebSocket + "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nab", "/ws /ws refused", 1},
	} {
		for _, atOnce := range []bool{true, false} {
			t.Run(fmt.Sprintf("%s, at once: %t", name, atOnce), func(t *testing.T) {
				address, malformed := serveUpgrades(t, true)
				conn := connect(t, address)
				size := 1
				if atOnce {
					size = 1 << 20
				}
				go func() {
					for rest := []byte(asksForWebSocket + tc.sent); len(rest) > 0; {
						n, err := conn.Write(rest[:min(size, len(rest))])
						if err != nil {
							return // refused
						}
						rest = rest[n:]
					}
					_ = conn.CloseWrite()
				}()
				var answers []string
				for in := bufio.NewReader(conn); ; {
					res, err := http.ReadResponse(in, nil)
					if err != nil {
						break
					}
					body, _ := io.ReadAll(res.Body)
					res.Body.Close()
					if res.StatusCode != http.StatusOK {
						body = []byte("refused")
					}
					answers = append(answers, string(body))
				}
				if got := strings.Join(answers, " "); got != tc.answers {
					t.Errorf("got %q, want %q", got, tc.answers)
				}
				if n := malformed.Load(); n != tc.malformed {
					t.Errorf("%d connections count as malformed", n)
				}
			})
		}
	}
}
