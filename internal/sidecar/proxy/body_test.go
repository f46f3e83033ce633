package proxy_test

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"net"
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
				"alone": func(t *testing.T, app string) string {
					return serveProxy(t, newProxy(t, app, noPool{}, decider(admit)))
				},
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
				conn, in := connect(t, serveProxy(t, newProxy(t, strings.TrimPrefix(app.URL, "http://"), noPool{}, decider(admit))))
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
			conn, in := connect(t, serveProxy(t, newProxy(t, strings.TrimPrefix(app.URL, "http://"), noPool{}, decider(admit))))
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

// TestAnAppReadsOnBehindItsAnswer, over a connection that it keeps, and over one that it has closed for
// writing. The client's connection goes on.
func TestAnAppReadsOnBehindItsAnswer(t *testing.T) {
	body := strings.Repeat("0123456789", 60<<10)
	for name, keeps := range map[string]bool{"kept": true, "closed for writing": false} {
		t.Run(name, func(t *testing.T) {
			app, err := net.Listen("tcp", "127.0.0.1:0")
			if err != nil {
				t.Fatal(err)
			}
			defer app.Close()
			got := make(chan string, 2)
			go func() {
				for conn, err := app.Accept(); err == nil; conn, err = app.Accept() {
					in := bufio.NewReader(conn)
					for r, err := http.ReadRequest(in); err == nil; r, err = http.ReadRequest(in) {
						_, _ = io.WriteString(conn, fine)
						if !keeps {
							_ = conn.(*net.TCPConn).CloseWrite() //nolint:forcetypeassert // the listener's are
						}
						data, _ := io.ReadAll(r.Body)
						got <- string(data)
					}
					_ = conn.Close()
				}
			}()
			conn, in := connect(t, serveProxy(t, newProxy(t, app.Addr().String(), noPool{}, decider(admit))))
			write(t, conn, fmt.Sprintf("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: %d\r\n\r\n%s", len(body), body[:100]))
			if res := read(t, in); res.StatusCode != http.StatusOK {
				t.Fatalf("answered with %s", res.Status)
			}
			write(t, conn, body[100:])
			if data := <-got; data != body {
				t.Errorf("the app gets %d bytes, want %d", len(data), len(body))
			}
			write(t, conn, "GET / HTTP/1.1\r\nHost: a\r\n\r\n")
			if res := read(t, in); res.StatusCode != http.StatusOK {
				t.Errorf("the next request is answered with %s", res.Status)
			}
		})
	}
}

// TestTheRestOfAnAnsweredBodyIsNoRequest: an app answers before it has the body, and the client
// sends the rest, which reads like a request.
func TestTheRestOfAnAnsweredBodyIsNoRequest(t *testing.T) {
	const rest = "GET /inside HTTP/1.1\r\nHost: a\r\n\r\n"
	for name, body := range map[string][2]string{
		"within a chunk":          {"Transfer-Encoding: chunked\r\n\r\n23\r\nab", rest + "\r\n0\r\n\r\n"},
		"within the size of one":  {"Transfer-Encoding: chunked\r\n\r\n2", "3\r\nab" + rest + "\r\n0\r\n\r\n"},
		"in front of the trailer": {"Transfer-Encoding: chunked\r\n\r\n2\r\nab\r\n", "23\r\nab" + rest + "\r\n0\r\n\r\n"},
		"of a known length":       {"Content-Length: 35\r\n\r\nab", rest},
	} {
		t.Run(name, func(t *testing.T) {
			var inside atomic.Int64
			app := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if r.URL.Path == "/inside" {
					inside.Add(1)
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
			conn, in := connect(t, serveProxy(t, newProxy(t, strings.TrimPrefix(app.URL, "http://"), noPool{}, decider(admit))))
			write(t, conn, "POST / HTTP/1.1\r\nHost: a\r\n"+body[0])
			if res := read(t, in); res.StatusCode != http.StatusOK {
				t.Fatalf("answered with %s", res.Status)
			}
			write(t, conn, body[1])
			_, _ = io.WriteString(conn, "GET /next HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n") // unless the connection has ended
			if rest, _ := io.ReadAll(in); len(rest) > 0 && !strings.HasPrefix(string(rest), "HTTP/1.1 200 OK\r\n") {
				t.Errorf("the next request is answered with %q", rest)
			}
			if n := inside.Load(); n > 0 {
				t.Errorf("%d requests reach the app that nobody has sent", n)
			}
		})
	}
}
