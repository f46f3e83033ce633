package proxy

import (
	"errors"
	"io"
	"net"
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

	begin(httptrace.GotConnInfo{Conn: c})
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
	begin(httptrace.GotConnInfo{Conn: c, Reused: true})
	if err := write("the head"); !errors.Is(err, errClosedByApp) {
		t.Errorf("a request that begins: %v, want that the app has closed the connection", err)
	}
}
