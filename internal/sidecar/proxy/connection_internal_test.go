package proxy

import (
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptrace"
	"testing"
)

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
	if s.notBegun() {
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
	if !s.notBegun() {
		t.Error("a request of which nothing was written counts as begun")
	}
	if err := write("the head"); !errors.Is(err, errClosedByApp) {
		t.Errorf("a request that begins: %v, want that the app has closed the connection", err)
	}
	if s.notBegun() {
		t.Error("a request that was written counts as not begun")
	}
}

// TestTheTraceOfARequestIsItsOwn: what answers one is told to nobody else.
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
