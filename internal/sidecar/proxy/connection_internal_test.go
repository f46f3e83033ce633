package proxy

import (
	"bufio"
	"context"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httptrace"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// TestConnectionsToTheAppAreReusedAndSoonClosed: an app that closes what is idle for two
// seconds never has to.
func TestConnectionsToTheAppAreReusedAndSoonClosed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := New(Config{Target: "app:80", Log: slog.New(slog.DiscardHandler)})
		defer p.Close()
		way, ok := p.app.Transport.(*direct).rest.(*http.Transport)
		if !ok {
			t.Fatal("requests with a body go another way")
		}
		opened, closed := 0, make(chan struct{})
		way.DialContext = checked(func(context.Context, string, string) (net.Conn, error) {
			ours, theirs := net.Pipe()
			opened++
			go func() {
				defer close(closed)
				defer theirs.Close()
				for in := bufio.NewReader(theirs); ; {
					r, err := http.ReadRequest(in)
					if err != nil {
						return
					}
					_, _ = io.Copy(io.Discard, r.Body)
					_, _ = io.WriteString(theirs, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")
				}
			}()
			return ours, nil
		})
		for range 50 {
			answer := httptest.NewRecorder()
			p.app.ServeHTTP(answer, httptest.NewRequestWithContext(t.Context(), http.MethodPost, "http://app/", strings.NewReader("hello")))
			if answer.Body.String() != "ok" {
				t.Fatalf("got %d and %q", answer.Code, answer.Body)
			}
		}
		if opened != 1 {
			t.Errorf("50 requests, one at a time, went over %d connections", opened)
		}
		last := time.Now()
		<-closed
		if idle := time.Since(last); idle != time.Second {
			t.Errorf("closed after %v, want a second", idle)
		}
	})
}

// TestAConnectionIsLookedAfterWhereARequestBegins, and nowhere else: what an app answers
// before it has read all, and closes behind, is an answer.
func TestAConnectionIsLookedAfterWhereARequestBegins(t *testing.T) {
	l, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	c, err := checked(toApp.DialContext)(t.Context(), "tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	app, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	defer app.Close()
	write := func(what string) error {
		_, err := io.WriteString(c, what)
		return err
	}

	var s sending
	s.begin(httptrace.GotConnInfo{Conn: c})
	if s.lost() {
		t.Error("who has a connection of its own would send it over another")
	}
	if err := write("the head"); err != nil {
		t.Fatal(err)
	}
	if _, err := io.WriteString(app, "answer"); err != nil {
		t.Fatal(err)
	}
	if err := app.(*net.TCPConn).CloseWrite(); err != nil {
		t.Fatal(err)
	}
	if answer, err := io.ReadAll(c); string(answer) != "answer" {
		t.Fatalf("read %q, %v", answer, err)
	}
	if err := write("the body"); err != nil {
		t.Errorf("a request that goes on: %v", err)
	}
	s.begin(httptrace.GotConnInfo{Conn: c, Reused: true})
	if !s.lost() {
		t.Error("a request of which nothing was written counts as begun")
	}
	if err := write("the head"); !errors.Is(err, errClosedByApp) {
		t.Errorf("a request that begins: %v, want that the app has closed the connection", err)
	}
	if !s.lost() {
		t.Error("a request counts as begun that was not written, because the app has closed the connection")
	}
}

// TestTheTraceOfARequestIsItsOwn: an answer to one is reported to no other.
func TestTheTraceOfARequestIsItsOwn(t *testing.T) {
	var told [2]int
	for i := range told {
		ctx := httptrace.WithClientTrace(t.Context(), &httptrace.ClientTrace{GotFirstResponseByte: func() { told[i]++ }})
		r, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://app/", http.NoBody)
		if err != nil {
			t.Fatal(err)
		}
		httptrace.ContextClientTrace(new(sending).of(r).Context()).GotFirstResponseByte()
	}
	if told != [2]int{1, 1} {
		t.Errorf("two requests were told %v times", told)
	}
}

// TestWhereTheHeadOfAnAnswerEnds cuts each text at every byte.
func TestWhereTheHeadOfAnAnswerEnds(t *testing.T) {
	for _, head := range []string{
		"HTTP/1.1 200 OK\r\n\r\n",
		"HTTP/1.1 204\r\nA: b\r\nHTTP/1.1 100: c\r\n\r\n",
		"HTTP/1.0 200 OK\nA: b\n\n",
		"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\nHTTP/1.1 404 Not Found\r\nA: b\r\n\r\n",
		"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\n\r\n",
	} {
		const behind = "\r\n\r\nHTTP/1.1 200 OK\r\n\r\n"
		for cut := range len(head) {
			var h answerHead
			if h.ends([]byte(head[:cut])) {
				t.Errorf("%q ends a head", head[:cut])
			}
			if !h.ends([]byte(head[cut:] + behind)) {
				t.Errorf("%q ends no head behind %q", head[cut:], head[:cut])
			}
		}
	}
}
