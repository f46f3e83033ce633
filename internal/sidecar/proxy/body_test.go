package proxy_test

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync/atomic"
	"testing"
)

// TestAnAppThatLeavesInTheMiddleOfABodyIsABadGateway, at once: the client may wait for an
// answer before it sends the rest.
func TestAnAppThatLeavesInTheMiddleOfABodyIsABadGateway(t *testing.T) {
	for name, body := range map[string]string{
		"in chunks":                "Transfer-Encoding: chunked\r\n\r\n2\r\nab\r\n",
		"of a known length":        "Content-Length: 34\r\n\r\nab",
		"larger than is kept":      "Content-Length: 34000\r\n\r\n" + strings.Repeat("a", 20_000),
		"that would be sent again": "Idempotency-Key: 1\r\nContent-Length: 34\r\n\r\nab",
	} {
		for said, answer := range map[string]string{
			"nothing was said": "",
			"hints were given": "HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n",
			"a head was begun": "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n",
			"hints and a head": "HTTP/1.1 103 Early Hints\r\n\r\nHTTP/1.1 200 OK\r\n",
		} {
			for where, front := range map[string]func(t *testing.T, app string) string{
				"alone": func(t *testing.T, app string) string { return framed(t, newProxy(t, app, noPool{}, decider(admit))) },
				"in a pool": func(t *testing.T, app string) string {
					address, _ := pooled(t, app, learning(), decider(admit), newDivider())
					return strings.TrimPrefix(address, "http://")
				},
			} {
				t.Run(name+", "+said+", "+where, func(t *testing.T) {
					app := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
						_, _ = r.Body.Read(make([]byte, 1))
						conn, _, err := http.NewResponseController(w).Hijack()
						if err != nil {
							t.Error(err)
							return
						}
						_, _ = io.WriteString(conn, answer)
						_ = conn.Close()
					}))
					defer app.Close()
					conn, in := connect(t, front(t, strings.TrimPrefix(app.URL, "http://")))
					write(t, conn, "POST / HTTP/1.1\r\nHost: a\r\n"+body)
					res := read(t, in)
					for res.StatusCode == http.StatusEarlyHints {
						res = read(t, in)
					}
					if res.StatusCode != http.StatusBadGateway {
						t.Fatalf("answered with %s", res.Status)
					}
					if c, err := in.ReadByte(); !errors.Is(err, io.EOF) {
						rest, _ := io.ReadAll(in)
						t.Errorf("then read %q, %v, want the end", string(c)+string(rest), err)
					}
				})
			}
		}
	}
}

// TestAnAppThatLeavesAConnectionThatServedOthersIsABadGateway soon, also where the request would
// be sent again if all of it had come.
func TestAnAppThatLeavesAConnectionThatServedOthersIsABadGateway(t *testing.T) {
	for _, method := range []string{http.MethodGet, http.MethodPut, http.MethodPost} {
		for name, body := range map[string]string{
			"in chunks":           "Transfer-Encoding: chunked\r\n\r\n2\r\nab\r\n",
			"of a known length":   "Content-Length: 34\r\n\r\nab",
			"larger than is kept": "Content-Length: 34000\r\n\r\n" + strings.Repeat("a", 20_000),
		} {
			t.Run(method+", "+name, func(t *testing.T) {
				var served atomic.Int64
				app := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
					_, _ = r.Body.Read(make([]byte, 1))
					if served.Add(1) == 1 {
						return
					}
					if conn, _, err := http.NewResponseController(w).Hijack(); err == nil {
						_ = conn.Close()
					}
				}))
				defer app.Close()
				conn, in := connect(t, framed(t, newProxy(t, strings.TrimPrefix(app.URL, "http://"), noPool{}, decider(admit))))
				write(t, conn, "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\n\r\nab")
				if res := read(t, in); res.StatusCode != http.StatusOK {
					t.Fatalf("the first is answered with %s", res.Status)
				}
				write(t, conn, method+" / HTTP/1.1\r\nHost: a\r\n"+body)
				if res := read(t, in); res.StatusCode != http.StatusBadGateway {
					t.Fatalf("answered with %s", res.Status)
				}
				if c, err := in.ReadByte(); !errors.Is(err, io.EOF) {
					t.Errorf("then read %q, %v, want the end", c, err)
				}
				if n := served.Load(); n != 2 {
					t.Errorf("%d requests reached the app, want 2", n)
				}
			})
		}
	}
}

// TestAnAnswerThatIsBrokenOffEndsTheConnection though its client sends no more of the body
// before it has the answer.
func TestAnAnswerThatIsBrokenOffEndsTheConnection(t *testing.T) {
	for name, answer := range map[string]string{
		"behind its head":      "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n",
		"in its body":          "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhell",
		"in its chunks":        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n4\r\nhell\r\n",
		"between other chunks": "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n4\r\nhe",
	} {
		t.Run(name, func(t *testing.T) {
			app := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				conn, _, err := http.NewResponseController(w).Hijack()
				if err != nil {
					t.Error(err)
					return
				}
				_, _ = io.WriteString(conn, answer)
				_ = conn.Close()
			}))
			defer app.Close()
			conn, in := connect(t, framed(t, newProxy(t, strings.TrimPrefix(app.URL, "http://"), noPool{}, decider(admit))))
			write(t, conn, "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 34\r\n\r\nab")
			all, err := io.ReadAll(in)
			if errors.Is(err, os.ErrDeadlineExceeded) {
				t.Fatalf("read %q, and no end", all)
			}
			if res, err := http.ReadResponse(bufio.NewReader(bytes.NewReader(all)), nil); err == nil {
				if body, err := io.ReadAll(res.Body); err == nil {
					t.Errorf("the answer seems complete, with %q", body)
				}
			}
		})
	}
}

// TestTheRestOfAnAnsweredBodyIsNoRequest: an app answers before it has the body, and the client
// sends the rest, which reads like a request.
func TestTheRestOfAnAnsweredBodyIsNoRequest(t *testing.T) {
	const inside = "GET /inside HTTP/1.1\r\nHost: a\r\n\r\n"
	for name, body := range map[string][2]string{
		"within a chunk":          {"Transfer-Encoding: chunked\r\n\r\n23\r\nab", inside + "\r\n0\r\n\r\n"},
		"within the size of one":  {"Transfer-Encoding: chunked\r\n\r\n2", "3\r\nab" + inside + "\r\n0\r\n\r\n"},
		"in front of the trailer": {"Transfer-Encoding: chunked\r\n\r\n2\r\nab\r\n", "23\r\nab" + inside + "\r\n0\r\n\r\n"},
		"of a known length":       {"Content-Length: 35\r\n\r\nab", inside},
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
