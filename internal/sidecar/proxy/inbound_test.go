package proxy_test

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"
)

// TestAClientIsAskedForItsBodyOnce with "100 Continue": by the app, which may do that at any time,
// or by the sidecar, which does it when the app has not for a second.
func TestAClientIsAskedForItsBodyOnce(t *testing.T) {
	for name, tt := range map[string]struct {
		late     bool // the app asks when it has the body
		requests int
	}{
		"by the app":                      {false, 1500},
		"by the sidecar, and then by app": {true, 1},
	} {
		t.Run(name, func(t *testing.T) {
			app := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				conn, in, err := http.NewResponseController(w).Hijack()
				if err != nil {
					t.Error(err)
					return
				}
				defer conn.Close()
				for r := r; err == nil; r, err = http.ReadRequest(in.Reader) {
					if tt.late {
						_, _ = in.Peek(1)
					}
					_, _ = io.WriteString(conn, "HTTP/1.1 100 Wait\r\nX-App: asks\r\n\r\n")
					_, _ = io.CopyN(io.Discard, in, r.ContentLength)
					_, _ = io.WriteString(conn, "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")
				}
			}))
			defer app.Close()
			address := serveProxy(t, newProxy(t, strings.TrimPrefix(app.URL, "http://"), noPool{}, decider(admit)))
			next := make(chan int, tt.requests)
			for i := range tt.requests {
				next <- i
			}
			close(next)
			var all sync.WaitGroup
			for range min(16, tt.requests) {
				all.Go(func() {
					for range next {
						if asked, err := asks(address); err != nil || len(asked) != 1 || tt.late == (asked[0] == "asks") {
							t.Errorf("asked by %q (empty for the sidecar), %v: want one of them", asked, err)
							return
						}
					}
				})
			}
			all.Wait()
		})
	}
}

// TestAClientIsNotAskedForItsBodyWithinAnAnswer, which comes in parts with more than a second between them.
func TestAClientIsNotAskedForItsBodyWithinAnAnswer(t *testing.T) {
	const head, part = "HTTP/1.1 429 Too Many Requests\r\nTransfer-Encoding: chunked\r\n\r\n", "2\r\nok\r\n0\r\n\r\n"
	app := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		conn, in, err := http.NewResponseController(w).Hijack()
		if err != nil {
			t.Error(err)
			return
		}
		defer conn.Close()
		_, _ = io.WriteString(conn, head)
		_ = conn.SetReadDeadline(time.Now().Add(1500 * time.Millisecond))
		_, _ = in.Peek(1) // nothing comes
		_, _ = io.WriteString(conn, part)
	}))
	defer app.Close()
	conn, in := connect(t, serveProxy(t, newProxy(t, strings.TrimPrefix(app.URL, "http://"), noPool{}, decider(admit))))
	write(t, conn, "POST / HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\nContent-Length: 1\r\n\r\n")
	res, err := http.ReadResponse(in, nil)
	if err != nil {
		t.Fatal(err)
	}
	if body, err := io.ReadAll(res.Body); err != nil || string(body) != "ok" || res.StatusCode != http.StatusTooManyRequests {
		t.Errorf("answered with %s, %q, %v", res.Status, body, err)
	}
}

// asks sends a request whose client waits until it is asked for the body, and returns which app
// asked for it.
func asks(address string) (asked []string, err error) {
	conn, err := net.Dial("tcp", address)
	if err != nil {
		return nil, fmt.Errorf("connect: %w", err)
	}
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(20 * time.Second))
	if _, err := io.WriteString(conn, "POST / HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\nContent-Length: 1\r\n\r\n"); err != nil {
		return nil, fmt.Errorf("send: %w", err)
	}
	for in := bufio.NewReader(conn); ; {
		res, err := http.ReadResponse(in, nil)
		if err != nil {
			return asked, fmt.Errorf("read an answer: %w", err)
		}
		if res.StatusCode >= http.StatusOK {
			return asked, nil
		}
		if asked = append(asked, res.Header.Get("X-App")); len(asked) == 1 {
			_, _ = io.WriteString(conn, "a")
		}
	}
}
