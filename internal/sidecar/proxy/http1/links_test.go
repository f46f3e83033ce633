package http1

import (
	"io"
	"net"
	"testing"
	"time"
)

// reused reports whether the next two requests that the app read came over one connection.
func (w *world) reused() bool {
	first, second := <-w.begun, <-w.begun
	return first == second
}

// TestConnectionsServeAgainWhenTheAnswerLeavesThemClean, and only then.
func TestConnectionsServeAgainWhenTheAnswerLeavesThemClean(t *testing.T) {
	for name, tc := range map[string]struct {
		method, answer string
		again          bool
	}{
		"a length":              {"GET", fine, true},
		"chunks":                {"GET", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n", true},
		"chunks and a trailer":  {"GET", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\nX-Sum: 1\r\n\r\n", true},
		"no body":               {"GET", "HTTP/1.1 204 No Content\r\n\r\n", true},
		"HEAD":                  {"HEAD", "HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n", true},
		"not modified":          {"GET", "HTTP/1.1 304 Not Modified\r\nContent-Length: 9\r\n\r\n", true},
		"HTTP/1.0, kept":        {"GET", "HTTP/1.0 200 OK\r\nConnection: keep-alive\r\nContent-Length: 2\r\n\r\nok", true},
		"it says that it ends":  {"GET", "HTTP/1.1 200 OK\r\nConnection: x, Close\r\nContent-Length: 2\r\n\r\nok", false},
		"HTTP/1.0":              {"GET", "HTTP/1.0 200 OK\r\nContent-Length: 2\r\n\r\nok", false},
		"more than its length":  {"GET", fine + "!", false},
		"more than its chunks":  {"GET", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n!", false},
		"a body of HEAD":        {"HEAD", fine, false},
		"another answer behind": {"GET", fine + fine, false},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, 1<<30, say(tc.answer))
			c, in := w.dial()
			for range 2 {
				w.write(c, tc.method+" / HTTP/1.1\r\nHost: a\r\n\r\n")
				w.read(in, tc.method)
			}
			if got := w.reused(); got != tc.again {
				t.Errorf("the connection serves again: %t, want %t", got, tc.again)
			}
		})
	}
}

// TestWhatTheAppSaysUnaskedIsNoAnswer: a connection over which something came while it was idle is not
// used.
func TestWhatTheAppSaysUnaskedIsNoAnswer(t *testing.T) {
	more := make(chan struct{})
	said := make(chan struct{})
	w := newWorld(t, 1<<30, func(c net.Conn, n int) bool {
		_, _ = io.WriteString(c, fine)
		if n == 1 {
			<-more
			_, _ = io.WriteString(c, "HTTP/1.1 500 No\r\nContent-Length: 0\r\n\r\n")
			close(said)
		}
		return true
	})
	c, in := w.dial()
	w.ask(c, in, getRoot)
	close(more)
	<-said
	if status := w.ask(c, in, getRoot); status != 200 {
		t.Errorf("got %d", status)
	}
	if w.reused() {
		t.Error("the connection was used again")
	}
}

// TestTheConnectionUsedLastIsTakenFirst, and no more are kept than a bound.
func TestTheConnectionUsedLastIsTakenFirst(t *testing.T) {
	var kept links
	defer kept.close()
	var all []*link
	for i := range maxIdle + 1 {
		ours, theirs := net.Pipe()
		defer theirs.Close()
		all = append(all, &link{conn: ours})
		if got := kept.put(all[i]); got != (i < maxIdle) {
			t.Fatalf("the connection %d is kept: %t", i, got)
		}
	}
	for i := maxIdle - 1; i >= 0; i-- {
		if kept.take() != all[i] {
			t.Fatal("another one is taken")
		}
	}
	if kept.take() != nil {
		t.Error("there is one more")
	}
}

// TestIdleConnectionsAreClosedInTime.
func TestIdleConnectionsAreClosedInTime(t *testing.T) {
	w := newWorld(t, 1<<30, say(fine))
	c, in := w.dial()
	began := time.Now()
	w.ask(c, in, getRoot)
	<-w.ended
	if took := time.Since(began); took < linkTime {
		t.Errorf("it was closed after %v", took)
	}
}

// TestAServerThatIsClosedKeepsNoConnection.
func TestAServerThatIsClosedKeepsNoConnection(t *testing.T) {
	w := newWorld(t, 1<<30, say(fine))
	c, in := w.dial()
	w.ask(c, in, getRoot)
	w.server.Close()
	<-w.ended
	w.wantEnd(in)
}
