package proxy

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptrace"
	"net/textproto"
	"slices"
	"strings"
	"sync"
	"testing"
)

// A script is an app that answers as a test says.
type script struct {
	address string
	begun   chan int      // the connections of requests that it read, by number
	over    chan struct{} // one for each connection that ended
}

// play serves connections until the test ends. answer is given the number of the request,
// and reports whether its connection serves more.
func play(t *testing.T, answer func(c net.Conn, request int) (more bool)) *script {
	t.Helper()
	l, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := &script{address: l.Addr().String(), begun: make(chan int, 100), over: make(chan struct{}, 100)}
	var running sync.WaitGroup
	running.Go(func() {
		for n := 1; ; n++ {
			c, err := l.Accept()
			if err != nil {
				return
			}
			running.Go(func() { s.talk(c, n, answer) })
		}
	})
	t.Cleanup(func() {
		_ = l.Close()
		running.Wait()
	})
	return s
}

func (s *script) talk(c net.Conn, n int, answer func(net.Conn, int) bool) {
	defer func() {
		_ = c.Close()
		s.over <- struct{}{}
	}()
	for in := bufio.NewReader(c); ; {
		r, err := http.ReadRequest(in)
		if err != nil {
			return
		}
		_, _ = io.Copy(io.Discard, r.Body)
		s.begun <- n
		if !answer(c, len(s.begun)) {
			return
		}
	}
}

// reused reports whether the next two requests that it read came over one connection.
func (s *script) reused() bool {
	first, second := <-s.begun, <-s.begun
	return first == second
}

// say answers every request alike.
func say(what string) func(net.Conn, int) bool {
	return func(c net.Conn, _ int) bool {
		_, err := io.WriteString(c, what)
		return err == nil
	}
}

func toward(t *testing.T, address string) *direct {
	t.Helper()
	d := newDirect(address)
	t.Cleanup(d.CloseIdleConnections)
	return d
}

func request(t *testing.T, ctx context.Context, method, address string) *http.Request { //nolint:revive // t comes first
	t.Helper()
	r, err := http.NewRequestWithContext(ctx, method, "http://"+address+"/a?b", nil)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// fetch returns the answer to a request and its body, read to the end.
func fetch(t *testing.T, d *direct, method string) (*http.Response, string) {
	t.Helper()
	res, err := d.RoundTrip(request(t, t.Context(), method, d.target))
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	return res, string(body)
}

// waiting returns how many connections are idle.
func waiting(d *direct) int {
	d.idle.mu.Lock()
	defer d.idle.mu.Unlock()
	return len(d.idle.links)
}

const fine = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"

// TestDirectRequestsAreThoseOfATransport compares them byte by byte.
func TestDirectRequestsAreThoseOfATransport(t *testing.T) {
	for _, method := range []string{http.MethodGet, http.MethodHead, http.MethodPost, http.MethodPut, http.MethodDelete, http.MethodOptions, "QUERY"} {
		said := make(chan []byte, 2)
		l, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		go func() {
			for c, err := l.Accept(); err == nil; c, err = l.Accept() {
				var read bytes.Buffer
				_, _ = http.ReadRequest(bufio.NewReaderSize(io.TeeReader(c, &read), 64<<10))
				said <- read.Bytes()
				_, _ = io.WriteString(c, "HTTP/1.1 204 No Content\r\nConnection: close\r\n\r\n")
				_ = c.Close()
			}
		}()
		d := toward(t, l.Addr().String())
		for _, way := range []http.RoundTripper{d, d.rest} {
			r := request(t, t.Context(), method, d.target)
			r.Host = "shop.example"
			r.URL.Opaque = "/a%2Fb|c"
			r.Header = http.Header{"User-Agent": {""}, "X-Many": {"1", "2"}, "lower": {"x"}, "Cookie": {strings.Repeat("c", 9000)}}
			res, err := way.RoundTrip(r)
			if err != nil {
				t.Fatal(err)
			}
			_ = res.Body.Close()
		}
		if got, want := string(<-said), string(<-said); got != want || !strings.HasPrefix(got, method+" ") {
			t.Errorf("%s: %d bytes, %.300q, want %d, %.300q", method, len(got), got, len(want), want)
		}
		_ = l.Close()
	}
}

// TestConnectionsServeAgainWhenTheAnswerLeavesThemClean, and only then.
func TestConnectionsServeAgainWhenTheAnswerLeavesThemClean(t *testing.T) {
	for name, tc := range map[string]struct {
		method, answer, body string
		ends, again          bool // the app closes the connection; it serves again
		trailer              string
	}{
		"a length":                {http.MethodGet, fine, "ok", false, true, ""},
		"no bytes":                {http.MethodGet, "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n", "", false, true, ""},
		"chunks":                  {http.MethodGet, "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\no\r\n1\r\nk\r\n0\r\n\r\n", "ok", false, true, ""},
		"a trailer":               {http.MethodGet, "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nTrailer: X-Sum\r\n\r\n2\r\nok\r\n0\r\nX-Sum: 7\r\n\r\n", "ok", false, true, "7"},
		"of HEAD":                 {http.MethodHead, "HTTP/1.1 200 OK\r\nContent-Length: 7\r\n\r\n", "", false, true, ""},
		"of HEAD, in chunks":      {http.MethodHead, "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n", "", false, true, ""},
		"204":                     {http.MethodGet, "HTTP/1.1 204 No Content\r\n\r\n", "", false, true, ""},
		"304":                     {http.MethodGet, "HTTP/1.1 304 Not Modified\r\nContent-Length: 7\r\n\r\n", "", false, true, ""},
		"HTTP/1.0, kept":          {http.MethodGet, "HTTP/1.0 200 OK\r\nConnection: keep-alive\r\nContent-Length: 2\r\n\r\nok", "ok", false, true, ""},
		"HTTP/1.0":                {http.MethodGet, "HTTP/1.0 200 OK\r\nContent-Length: 2\r\n\r\nok", "ok", false, false, ""},
		"up to the end":           {http.MethodGet, "HTTP/1.1 200 OK\r\n\r\nok", "ok", true, false, ""},
		"the last one":            {http.MethodGet, "HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 2\r\n\r\nok", "ok", false, false, ""},
		"the last one, no bytes":  {http.MethodGet, "HTTP/1.1 204 No Content\r\nConnection: close\r\n\r\n", "", false, false, ""},
		"more than was announced": {http.MethodGet, fine + "HTTP/1.1 200 OK\r\n", "ok", false, false, ""},
		"another protocol":        {http.MethodGet, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: h2c\r\n\r\n", "", false, false, ""},
	} {
		t.Run(name, func(t *testing.T) {
			app := play(t, func(c net.Conn, _ int) bool { return say(tc.answer)(c, 0) && !tc.ends })
			d := toward(t, app.address)
			for range 2 {
				res, err := d.RoundTrip(request(t, t.Context(), tc.method, d.target))
				if err != nil {
					t.Fatal(err)
				}
				if n := waiting(d); (n == 1) != (tc.again && tc.body == "") {
					t.Errorf("%d connections are idle while the body is not read", n)
				}
				body, err := io.ReadAll(res.Body)
				if string(body) != tc.body || err != nil || res.Trailer.Get("X-Sum") != tc.trailer {
					t.Errorf("got %q, %v and %v", body, err, res.Trailer)
				}
				if n := waiting(d); (n == 1) != tc.again {
					t.Errorf("%d connections are idle", n)
				}
				if err := res.Body.Close(); err != nil {
					t.Error(err)
				}
			}
			if app.reused() != tc.again {
				t.Errorf("the second came over the first one's connection: %t", !tc.again)
			}
		})
	}
}

// TestAnAnswerThatIsNotWantedEndsItsConnection: its rest may never come.
func TestAnAnswerThatIsNotWantedEndsItsConnection(t *testing.T) {
	app := play(t, say("HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nsome"))
	d := toward(t, app.address)
	res, err := d.RoundTrip(request(t, t.Context(), http.MethodGet, app.address))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := io.ReadFull(res.Body, make([]byte, len("some"))); err != nil {
		t.Error(err)
	}
	if err := res.Body.Close(); err != nil || waiting(d) > 0 {
		t.Errorf("%v, and %d connections are kept", err, waiting(d))
	}
	<-app.over
	if _, err := res.Body.Read(make([]byte, 1)); !errors.Is(err, http.ErrBodyReadAfterClose) {
		t.Errorf("then it reads %v", err)
	}
}

func TestAMalformedBodyEndsItsConnection(t *testing.T) {
	app := play(t, say("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nokno"))
	d := toward(t, app.address)
	res, err := d.RoundTrip(request(t, t.Context(), http.MethodGet, app.address))
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	if body, err := io.ReadAll(res.Body); err == nil || waiting(d) > 0 {
		t.Errorf("got %q, %v, and %d connections are kept", body, err, waiting(d))
	}
	<-app.over
}

func TestBodiesAreNotBounded(t *testing.T) {
	app := play(t, say("HTTP/1.1 200 OK\r\nContent-Length: 12582912\r\n\r\n"+strings.Repeat("x", 12<<20)))
	if _, body := fetch(t, toward(t, app.address), http.MethodGet); len(body) != 12<<20 {
		t.Errorf("got %d bytes", len(body))
	}
}

var errGone = errors.New("the client is gone")

// TestTheEndOfARequestEndsWhateverItWaitsFor, closes its connection and returns why.
func TestTheEndOfARequestEndsWhateverItWaitsFor(t *testing.T) {
	for name, answer := range map[string]string{
		"an answer":                "",
		"the rest of a header":     "HTTP/1.1 200 OK\r\nContent-",
		"the rest of a body":       "HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nsome",
		"the next event":           "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n4\r\nsome\r\n",
		"what the app ends itself": "HTTP/1.1 200 OK\r\n\r\nsome",
	} {
		t.Run(name, func(t *testing.T) {
			ctx, end := context.WithCancelCause(t.Context())
			defer end(nil)
			said := make(chan struct{})
			app := play(t, func(c net.Conn, _ int) bool {
				defer close(said)
				return say(answer)(c, 0)
			})
			begins := strings.HasSuffix(answer, "some") || strings.HasSuffix(answer, "some\r\n")
			if !begins {
				go func() {
					<-said
					end(errGone)
				}()
			}
			res, err := toward(t, app.address).RoundTrip(request(t, ctx, http.MethodGet, app.address))
			if begins {
				if err != nil {
					t.Fatal(err)
				}
				defer res.Body.Close()
				if _, err := io.ReadFull(res.Body, make([]byte, len("some"))); err != nil {
					t.Fatalf("what came is not passed on: %v", err)
				}
				end(errGone)
				_, err = res.Body.Read(make([]byte, 1))
			}
			if !errors.Is(err, errGone) {
				t.Errorf("got %v", err)
			}
			<-app.over
		})
	}
}

// TestAConnectionThatIsBeingClosedIsNotKept: the request ended while its answer, all of it
// there, was being read.
func TestAConnectionThatIsBeingClosedIsNotKept(t *testing.T) {
	d := toward(t, play(t, say(fine)).address)
	ctx, end := context.WithCancelCause(t.Context())
	res, err := d.RoundTrip(request(t, ctx, http.MethodGet, d.target))
	end(errGone)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	if body, err := io.ReadAll(res.Body); string(body) != "ok" || err != nil || waiting(d) > 0 {
		t.Errorf("got %q, %v, and %d connections are kept", body, err, waiting(d))
	}
}

func TestARequestThatEndedBeforeIsNotSent(t *testing.T) {
	app := play(t, say(fine))
	d := toward(t, app.address)
	fetch(t, d, http.MethodGet)
	ctx, end := context.WithCancelCause(t.Context())
	end(errGone)
	if _, err := d.RoundTrip(request(t, ctx, http.MethodPost, app.address)); !errors.Is(err, errGone) {
		t.Errorf("got %v", err)
	}
	if fetch(t, d, http.MethodGet); len(app.begun) != 2 || !app.reused() {
		t.Error("it touched a connection")
	}
}

// TestInformationalAnswersArePassedOn, each with a header as long as that of an answer may be.
func TestInformationalAnswersArePassedOn(t *testing.T) {
	long := strings.Repeat("X: "+strings.Repeat("x", 60<<10)+"\r\n", 100)
	app := play(t, say("HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\n"+long+"\r\nHTTP/1.1 103 Early Hints\r\n"+long+"\r\n"+fine))
	d := toward(t, app.address)
	var seen []int
	told := error(nil)
	ctx := httptrace.WithClientTrace(t.Context(), &httptrace.ClientTrace{Got1xxResponse: func(code int, _ textproto.MIMEHeader) error {
		seen = append(seen, code)
		return told
	}})
	for range 2 {
		res, err := d.RoundTrip(request(t, ctx, http.MethodGet, app.address))
		if err != nil || res.StatusCode != http.StatusOK {
			t.Fatal(res, err)
		}
		_, _ = io.Copy(io.Discard, res.Body)
	}
	if want := []int{100, 103, 103, 100, 103, 103}; !slices.Equal(seen, want) || !app.reused() {
		t.Errorf("got %v", seen)
	}
	told = errGone
	if _, err := d.RoundTrip(request(t, ctx, http.MethodGet, app.address)); !errors.Is(err, errGone) {
		t.Errorf("nobody wants to be told, and the answer is %v", err)
	}
	<-app.over
}

func TestTheHeaderOfAnAnswerIsBounded(t *testing.T) {
	line := "X: " + strings.Repeat("x", 60<<10) + "\r\n"
	app := play(t, func(c net.Conn, _ int) bool {
		more := say("HTTP/1.1 200 OK\r\n")(c, 0)
		for more {
			more = say(line)(c, 0)
		}
		return false
	})
	if _, err := toward(t, app.address).RoundTrip(request(t, t.Context(), http.MethodGet, app.address)); !errors.Is(err, errHeadTooLong) {
		t.Errorf("got %v", err)
	}
}

// TestARequestThatEndsConnectionsIsSentTwice, and no more: the next app would close them, too.
func TestARequestThatEndsConnectionsIsSentTwice(t *testing.T) {
	for _, method := range []string{http.MethodGet, http.MethodPut, http.MethodDelete} {
		for _, body := range []string{"", "hello"} {
			t.Run(method+" "+body, func(t *testing.T) {
				app := play(t, func(c net.Conn, request int) bool { return request <= 2 && say(fine)(c, 0) })
				d := toward(t, app.address)
				send := func() (*http.Response, error) {
					r := request(t, t.Context(), method, app.address)
					if body != "" {
						r.Body, r.ContentLength = io.NopCloser(strings.NewReader(body)), int64(len(body))
						sendAgain(r, r, false)
					}
					return d.RoundTrip(r)
				}
				var open [2]*http.Response // over a connection each
				for i := range open {
					res, err := send()
					if err != nil {
						t.Fatal(err)
					}
					open[i] = res
				}
				for _, res := range open {
					_, _ = io.Copy(io.Discard, res.Body)
					_ = res.Body.Close()
				}
				if res, err := send(); err == nil {
					t.Errorf("got %s, want an error", res.Status)
					_ = res.Body.Close()
				}
				if n := len(app.begun) - len(open); n != 2 {
					t.Errorf("it came %d times, want 2", n)
				}
			})
		}
	}
}

// refusing is a transport whose first connections the app closes before anything is written.
type refusing struct {
	times int
	begun bool // something was written of each
	spoke bool // and the app began to answer
	tries int
	body  string // of the last request
}

func (*refusing) CloseIdleConnections() {}

func (f *refusing) RoundTrip(r *http.Request) (*http.Response, error) {
	f.tries++
	data, err := io.ReadAll(r.Body) // as far as a buffer goes, before anything is written
	if err != nil {
		return nil, err
	}
	f.body = string(data)
	if f.tries > f.times {
		return &http.Response{StatusCode: http.StatusOK, Body: http.NoBody}, nil
	}
	c := &connection{}
	httptrace.ContextClientTrace(r.Context()).GotConn(httptrace.GotConnInfo{Conn: c, Reused: true})
	c.wrote.Store(f.begun)
	c.spoke.Store(f.spoke)
	return nil, errClosedByApp
}

// TestALostRequestIsSentAgain when nothing of it was written, or it does no harm twice.
func TestALostRequestIsSentAgain(t *testing.T) {
	for name, tc := range map[string]struct {
		app          refusing
		method, body string
		tries        int
		ok           bool
	}{
		"over the next connection":       {refusing{times: 1}, http.MethodPost, "whole", 2, true},
		"as often as it takes":           {refusing{times: 5}, http.MethodPost, "whole", 6, true},
		"not what was begun":             {refusing{times: 1, begun: true}, http.MethodPost, "whole", 1, false},
		"what does no harm twice":        {refusing{times: 1, begun: true}, http.MethodPut, "whole", 2, true},
		"but only once":                  {refusing{times: 2, begun: true}, http.MethodPut, "whole", 2, false},
		"not what is being answered":     {refusing{times: 1, begun: true, spoke: true}, http.MethodPut, "whole", 1, false},
		"not what is no longer known of": {refusing{times: 1}, http.MethodPut, strings.Repeat("long", keptBytes), 1, false},
	} {
		t.Run(name, func(t *testing.T) {
			d := toward(t, "app")
			d.rest = &tc.app
			r, err := http.NewRequestWithContext(t.Context(), tc.method, "http://app/", io.NopCloser(strings.NewReader(tc.body)))
			if err != nil {
				t.Fatal(err)
			}
			sendAgain(r, r, false)
			res, err := d.RoundTrip(r)
			if (err == nil) != tc.ok || tc.app.tries != tc.tries || tc.app.body != tc.body {
				t.Errorf("%d tries, the last with %d bytes: %v", tc.app.tries, len(tc.app.body), err)
			}
			if err == nil {
				_ = res.Body.Close()
			}
		})
	}
}
