package proxy_test

import (
	"bufio"
	"io"
	"net"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
)

// A server is an app that answers one request at a time, as a test scripts.
type server struct {
	net.Listener
	begun  atomic.Int64 // requests whose head it read
	bodies chan string  // of the requests that it read
}

// serveBy serves connections one after another until the test ends. answer is given the
// number of the request on its connection and what ends it, and reports whether to go on.
func serveBy(t *testing.T, answer func(c net.Conn, nth int) (more bool)) *server {
	t.Helper()
	l, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := &server{Listener: l, bodies: make(chan string, 1)}
	done := make(chan struct{})
	go func() {
		defer close(done)
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			s.talk(c, answer)
		}
	}()
	t.Cleanup(func() {
		_ = l.Close()
		<-done
	})
	return s
}

func (s *server) talk(c net.Conn, answer func(net.Conn, int) bool) {
	defer c.Close()
	in := bufio.NewReader(c)
	for nth := 1; ; nth++ {
		r, err := http.ReadRequest(in)
		if err != nil {
			return
		}
		s.begun.Add(1)
		body, err := io.ReadAll(r.Body)
		if err != nil {
			return
		}
		more := answer(c, nth)
		if !more {
			_ = c.Close()
		}
		s.bodies <- string(body) // after the connection was closed, if it was
		if !more {
			return
		}
	}
}

const fine = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"

// TestNoRequestIsLostToAConnectionThatTheAppHasClosed has each request come after the
// app closed the connection that it would go over, and mostly before anybody saw that.
func TestNoRequestIsLostToAConnectionThatTheAppHasClosed(t *testing.T) {
	app := serveBy(t, func(c net.Conn, _ int) bool {
		_, _ = io.WriteString(c, fine)
		return false
	})
	url := "http://" + inFront(t, app.Addr().String(), admit)
	c := client(t, false)
	for _, body := range []string{"", "hello", strings.Repeat("long ", 50_000)} {
		for n := range 100 {
			res, got := do(t, c, newRequest(t, http.MethodPost, url, strings.NewReader(body)))
			if res.StatusCode != http.StatusOK {
				t.Fatalf("POST %d with %d bytes: %d %s", n, len(body), res.StatusCode, got)
			}
			if seen := <-app.bodies; seen != body {
				t.Fatalf("POST %d: the app saw %d bytes, want %d", n, len(seen), len(body))
			}
		}
	}
}

// TestARequestThatTheAppMayHaveBegunIsNotSentAgain has the app read a request and close
// the connection. One that does no harm twice is only sent again while its body is there.
func TestARequestThatTheAppMayHaveBegunIsNotSentAgain(t *testing.T) {
	long := strings.Repeat("long ", 50_000)
	for name, tc := range map[string]struct{ method, body string }{
		"POST without a body":  {http.MethodPost, ""},
		"POST with a body":     {http.MethodPost, "hello"},
		"GET with a long body": {http.MethodGet, long},
		"PUT with a long body": {http.MethodPut, long},
	} {
		t.Run(name, func(t *testing.T) {
			app := serveBy(t, func(c net.Conn, nth int) bool {
				if nth == 1 {
					_, _ = io.WriteString(c, fine)
				}
				return nth == 1
			})
			url := "http://" + inFront(t, app.Addr().String(), admit)
			c := client(t, false)
			for _, want := range []int{http.StatusOK, http.StatusBadGateway} {
				res, _ := do(t, c, newRequest(t, tc.method, url, strings.NewReader(tc.body)))
				if res.StatusCode != want {
					t.Fatalf("got %d, want %d", res.StatusCode, want)
				}
				<-app.bodies
			}
			if n := app.begun.Load(); n != 2 {
				t.Errorf("the app began %d requests, want 2", n)
			}
		})
	}
}

// TestARequestThatDoesNoHarmTwiceIsSentAgain has the app read a request over a connection that
// served another one, and close it.
func TestARequestThatDoesNoHarmTwiceIsSentAgain(t *testing.T) {
	for _, method := range []string{http.MethodGet, http.MethodOptions, http.MethodPut, http.MethodDelete} {
		for _, body := range []string{"", "hello"} {
			t.Run(method+" "+body, func(t *testing.T) {
				app := serveBy(t, func(c net.Conn, nth int) bool {
					if nth == 1 {
						_, _ = io.WriteString(c, fine)
					}
					return nth == 1
				})
				url := "http://" + inFront(t, app.Addr().String(), admit)
				c := client(t, false)
				for n := range 2 {
					res, _ := do(t, c, newRequest(t, method, url, strings.NewReader(body)))
					if res.StatusCode != http.StatusOK {
						t.Fatalf("request %d: got %d", n, res.StatusCode)
					}
					for range n + 1 { // the second one comes twice
						if seen := <-app.bodies; seen != body {
							t.Errorf("request %d has the body %q at the app", n, seen)
						}
					}
				}
			})
		}
	}
}
