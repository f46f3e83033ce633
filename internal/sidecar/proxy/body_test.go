package proxy_test

import (
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
)

// TestTheRestOfAnAnsweredBodyIsNoRequest: an app answers before it has the body, and the client
// sends the rest, which reads like a request.
func TestTheRestOfAnAnsweredBodyIsNoRequest(t *testing.T) {
	const inside = "GET /inside HTTP/1.1\r\nHost: a\r\n\r\n"
	for name, body := range map[string][2]string{
		"within a chunk":          {"Transfer-Encoding: chunked\r\n\r\n22\r\nab", inside + "\r\n0\r\n\r\n"},
		"within the size of one":  {"Transfer-Encoding: chunked\r\n\r\n2", "2\r\nab" + inside + "\r\n0\r\n\r\n"},
		"in front of the trailer": {"Transfer-Encoding: chunked\r\n\r\n2\r\nab\r\n", "22\r\nab" + inside + "\r\n0\r\n\r\n"},
		"of a known length":       {"Content-Length: 34\r\n\r\nab", inside},
	} {
		t.Run(name, func(t *testing.T) {
			var more atomic.Int64
			app := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if r.URL.Path == "/inside" || r.URL.Path == "/next" {
					more.Add(1)
				}
				conn, _, err := http.NewResponseController(w).Hijack()
				if err != nil {
					t.Error(err)
					return
				}
				_, _ = io.WriteString(conn, fine)
				_ = conn.Close()
			}))
			defer app.Close()
			conn, in := connect(t, framed(t, newProxy(t, strings.TrimPrefix(app.URL, "http://"), noPool{}, decider(admit))))
			write(t, conn, "POST / HTTP/1.1\r\nHost: a\r\n"+body[0])
			if res := read(t, in); res.StatusCode != http.StatusOK {
				t.Fatalf("answered with %s", res.Status)
			}
			write(t, conn, body[1])
			if c, err := in.ReadByte(); !errors.Is(err, io.EOF) {
				t.Errorf("then read %q, %v, want the end", c, err)
			}
			if n := more.Load(); n > 0 {
				t.Errorf("%d requests reach the app that nobody has sent", n)
			}
		})
	}
}
