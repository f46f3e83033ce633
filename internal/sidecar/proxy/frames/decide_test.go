package frames

import (
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"

	"golang.org/x/net/http2"

	"github.com/weir-dev/weir/internal/sidecar/membudget"
)

// TestAStreamThatWaitsHoldsUpNoOther, and gets what came meanwhile in its turn.
func TestAStreamThatWaitsHoldsUpNoOther(t *testing.T) {
	w := newWorld(t)
	c := w.client()
	c.ask(1, "POST", "/wait", false)
	<-w.handler.waiting
	c.data(1, false, "kept")
	c.headers(1, true, "x-sum", "7", "x-own", "no")
	c.ask(3, "GET", "/", true)
	app := w.accept()
	app.want("HEADERS 1 :method=GET :path=/ END")
	app.headers(1, true, ":status", "200")
	c.want("HEADERS 3 :status=200 END")
	close(w.handler.on)
	app.want("HEADERS 3 :method=POST :path=/wait", "DATA 3 kept", "HEADERS 3 x-sum=7 END")
	app.headers(3, true, ":status", "201")
	c.want("HEADERS 1 :status=201 END")
}

// TestAStreamThatIsResetWhileItWaitsReachesNothing, and gives back what it has taken.
func TestAStreamThatIsResetWhileItWaitsReachesNothing(t *testing.T) {
	w := newWorld(t)
	c := w.client()
	c.ask(1, "POST", "/wait", false)
	<-w.handler.waiting
	c.data(1, false, "dropped")
	c.must(c.framer.WriteRSTStream(1, http2.ErrCodeCancel))
	if got := <-w.handler.waiting; got != "!/wait" {
		t.Fatalf("%s waits", got)
	}
	c.ask(3, "GET", "/", true)
	app := w.accept()
	app.want("HEADERS 1 :method=GET :path=/ END")
	app.headers(1, true, ":status", "200")
	c.want("HEADERS 3 :status=200 END")
}

// TestStreamsThatWereResetCountUntilTheyAreDecided: a client that resets them at once gets no
// further ones, and in the end no connection.
func TestStreamsThatWereResetCountUntilTheyAreDecided(t *testing.T) {
	w := newWorld(t)
	on := make(chan struct{})
	w.handler.stuck = on
	c := w.client()
	id := uint32(1)
	for range maxStreams {
		c.ask(id, "GET", "/stuck", true)
		c.must(c.framer.WriteRSTStream(id, http2.ErrCodeCancel))
		id += 2
	}
	c.ask(id, "GET", "/", true)
	c.want("RST " + itoa(id) + " REFUSED_STREAM")
	go func() {
		for id += 2; ; id += 2 {
			if _, err := c.Write(appendReset(appendBlock(nil, id, []byte{0x82, 0x84, 0x86}, frameBytes, true), id, http2.ErrCodeCancel)); err != nil {
				return
			}
		}
	}()
	for got := ""; got != "EOF"; got = c.read() {
		if len(got) > 6 && got[:6] == "GOAWAY" {
			if got[len(got)-17:] != "ENHANCE_YOUR_CALM" {
				t.Errorf("read %q", got)
			}
			break
		}
	}
	close(on)
}

// TestStreamsThatAreResetAtOnce leave nothing, however many they are: not at the app, whose connections
// stay few, and not in the windows.
func TestStreamsThatAreResetAtOnce(t *testing.T) {
	const floods = maxRefused - maxStreams // more in a row may end the connection
	w := newWorld(t)
	connections := serveHTTP2(t, w, func(rw http.ResponseWriter, r *http.Request) { _, _ = io.Copy(rw, r.Body) })
	var clients sync.WaitGroup
	for range 3 {
		c := w.client()
		clients.Go(func() {
			id := uint32(1)
			for ; id < 2*floods; id += 2 {
				b := appendBlock(nil, id, []byte{0x83, 0x84, 0x86}, frameBytes, false) // a POST of / over http
				b = append(appendHeader(b, 3, http2.FrameData, 0, id), "abc"...)
				if _, err := c.Write(appendReset(b, id, http2.ErrCodeCancel)); err != nil {
					t.Errorf("at stream %d: %v", id, err)
					return
				}
			}
			for answered := false; !answered; id += 2 { // it is refused while others are decided about
				c.ask(id, "POST", "/", false)
				c.data(id, true, "last")
				answered = c.echoed(id)
			}
		})
	}
	clients.Wait()
	eventually(t, "streams are left", func() bool { return !w.any(func(c *conn) bool { return len(c.streams) > 0 || c.lingering > 0 }) })
	w.wantWindows()
	if n := connections.Load(); n > 3*4 {
		t.Errorf("the app has had %d connections", n)
	}
}

// echoed reports whether a stream is answered, and not refused.
func (e *end) echoed(id uint32) bool {
	e.Helper()
	for {
		switch got := e.read(); {
		case strings.HasPrefix(got, "DATA "+itoa(id)+" last"):
			return true
		case got == "RST "+itoa(id)+" REFUSED_STREAM":
			return false
		case got == "EOF", strings.Contains(got, ":status=5"), strings.HasPrefix(got, "GOAWAY"):
			e.Fatalf("read %q", got)
		}
	}
}

// TestOnlySoManyStreamsAreOpen at a time.
func TestOnlySoManyStreamsAreOpen(t *testing.T) {
	w := newWorld(t)
	c := w.client()
	c.must(c.framer.WriteSettingsAck())
	for i := range uint32(maxStreams) {
		c.ask(2*i+1, "GET", "/wait", true)
	}
	c.ask(2*maxStreams+1, "GET", "/", true)
	c.want("RST 501 PROTOCOL_ERROR")
}

// TestARequestWithoutRoomIsAnswered, and another one passes once there is room.
func TestARequestWithoutRoomIsAnswered(t *testing.T) {
	w := newWorldIn(t, membudget.New(200<<10))
	c := w.client()
	c.ask(1, "POST", "/wait", false)
	<-w.handler.waiting
	c.ask(3, "POST", "/", false)
	c.want("HEADERS 3 :status=503 END", "RST 3 NO_ERROR")
	c.must(c.framer.WriteRSTStream(1, http2.ErrCodeCancel))
	<-w.handler.waiting
	for id := uint32(5); ; id += 2 { // what it has taken is given back a moment later
		c.ask(id, "POST", "/refused", true)
		if got := c.read(); got == "HEADERS "+itoa(id)+" :status=429 retry-after=1" {
			return
		}
	}
}
