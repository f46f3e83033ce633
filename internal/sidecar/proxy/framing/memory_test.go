package framing

import (
	"bufio"
	"context"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"testing"
	"time"

	"golang.org/x/net/http2"

	"github.com/weir-dev/weir/internal/sidecar/membudget"
)

// places is how many connections of HTTP/1.1 the room of a test is for.
const places = 64

// A busyServer has room for a few more connections.
type busyServer struct {
	memory  *membudget.Budget
	address string
	end     func() // of the requests that wait
	server  *httptest.Server
}

// nobody is the holder of connections that never give way.
type nobody struct{}

func (nobody) Pending() bool { return false }
func (nobody) Yield(bool)    {}

// serveBusy serves "hello" with room for that many bytes more. Requests for /wait wait until
// the test ends.
func serveBusy(t *testing.T, left int64) busyServer {
	t.Helper()
	return serveParking(t, left, time.Hour, 2*time.Hour)
}

// serveParking is serveBusy with connections that are parked once they are idle for a time, and end
// after another.
func serveParking(t *testing.T, left int64, after, end time.Duration) busyServer {
	t.Helper()
	r := membudget.New(places*membudget.ServerBytes + left)
	port := r.Port(true).Of(membudget.ServerBytes)
	for i := range byte(places) {
		c, ok := port.Connect(netip.AddrFrom4([4]byte{10, 0, 0, i}), 0, nobody{})
		if !ok || !c.Active() {
			t.Fatal("there is no memory for those before")
		}
	}
	waiting, over := context.WithCancel(t.Context())
	s := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		taken, ok := Admit(r)
		if !ok {
			w.WriteHeader(http.StatusServiceUnavailable)
			return
		}
		defer taken.Done()
		if r.URL.Path == "/wait" {
			<-waiting.Done()
		}
		_, _ = io.WriteString(w, "hello")
	}))
	s.Listener = listen(s.Listener, func() {}, port, after)
	s.Config.ConnContext, s.Config.ConnState = Context, State
	s.Config.ReadHeaderTimeout, s.Config.IdleTimeout = time.Minute, end
	s.Config.Protocols = new(http.Protocols)
	s.Config.Protocols.SetHTTP1(true)
	s.Config.Protocols.SetUnencryptedHTTP2(true)
	s.Start()
	t.Cleanup(s.Close)
	t.Cleanup(over)
	return busyServer{r, s.Listener.Addr().String(), over, s}
}

func (s busyServer) dial(t *testing.T) net.Conn {
	t.Helper()
	c, err := new(net.Dialer).DialContext(t.Context(), "tcp", s.address)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	_ = c.SetDeadline(time.Now().Add(time.Minute))
	return c
}

const getRoot = "GET / HTTP/1.1\r\nHost: a\r\n\r\n"

// ask sends what begins with a request and returns the status of its answer.
func ask(t *testing.T, c net.Conn, say string) (status int, closes bool) {
	t.Helper()
	if _, err := io.WriteString(c, say); err != nil {
		t.Fatal(err)
	}
	res, err := http.ReadResponse(bufio.NewReader(c), nil)
	if err != nil {
		t.Fatalf("%.20q was not answered: %v", say, err)
	}
	defer res.Body.Close()
	if _, err := io.Copy(io.Discard, res.Body); err != nil {
		t.Fatal(err)
	}
	return res.StatusCode, res.Close
}

// wantEnd waits until the server has closed the connection, and reads nothing before.
func wantEnd(t *testing.T, c net.Conn) {
	t.Helper()
	if rest, err := io.ReadAll(c); len(rest) > 0 || err != nil {
		t.Fatalf("read %q, %v, want the end", rest, err)
	}
}

// wantGoAway reads up to a GOAWAY and the end of the connection.
func wantGoAway(t *testing.T, c net.Conn, last uint32) {
	t.Helper()
	framer := http2.NewFramer(io.Discard, c)
	for {
		f, err := framer.ReadFrame()
		if err != nil {
			t.Fatal(err)
		}
		if away, ok := f.(*http2.GoAwayFrame); ok {
			if away.LastStreamID != last || away.ErrCode != http2.ErrCodeNo {
				t.Errorf("the connection ended with %v", away)
			}
			wantEnd(t, c)
			return
		}
	}
}

// TestAConnectionWithoutRoomIsAnswered in its own protocol.
func TestAConnectionWithoutRoomIsAnswered(t *testing.T) {
	s := serveBusy(t, 0)
	for name, say := range map[string]string{"a request": getRoot, "a body": "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 30000\r\n\r\n" + strings.Repeat("x", 30000), "nothing": ""} {
		t.Run(name, func(t *testing.T) {
			c := s.dial(t)
			if status, closes := ask(t, c, say); status != http.StatusServiceUnavailable || !closes {
				t.Errorf("got %d, closes: %v", status, closes)
			}
			wantEnd(t, c)
		})
	}
	t.Run("HTTP/2", func(t *testing.T) {
		c := s.dial(t)
		_, _ = io.WriteString(c, Preface+"\x00\x00\x00\x04\x00\x00\x00\x00\x00")
		wantGoAway(t, c, 0)
	})
}

// TestAnIdleConnectionGivesWay to one that comes, and one with a request does not.
func TestAnIdleConnectionGivesWay(t *testing.T) {
	s := serveBusy(t, 8*(membudget.ServerBytes+membudget.RequestBytes))
	working := s.dial(t)
	_, _ = io.WriteString(working, "GET /wait HTTP/1.1\r\nHost: a\r\n\r\n")
	until(t, "the request does not begin", func() bool { return s.memory.Taken(membudget.Requests) > 0 })
	first := s.dial(t)
	for i := range 40 {
		c := first
		if i > 1 {
			c = s.dial(t)
		}
		if status, _ := ask(t, c, getRoot); status != http.StatusOK {
			t.Fatalf("request %d got %d", i, status)
		}
		until(t, "it does not become idle", func() bool { return s.memory.Taken(membudget.Requests) == membudget.RequestBytes })
	}
	wantEnd(t, first)
	s.end()
	if status, _ := ask(t, working, ""); status != http.StatusOK {
		t.Errorf("the one with a request got %d", status)
	}
}

// TestAnIdleConnectionOfHTTP2GivesWay with a GOAWAY, so that its client asks elsewhere.
func TestAnIdleConnectionOfHTTP2GivesWay(t *testing.T) {
	s := serveBusy(t, membudget.ServerBytes+membudget.HTTP2Bytes+2*membudget.ServerBytes/3)
	idle := s.dial(t)
	framer := http2.NewFramer(idle, idle)
	_, _ = io.WriteString(idle, Preface)
	_ = framer.WriteSettings()
	for { // one that closes before it has read everything resets the connection
		f, err := framer.ReadFrame()
		if err != nil {
			t.Fatal(err)
		}
		if settings, ok := f.(*http2.SettingsFrame); ok && settings.IsAck() {
			break
		}
	}
	s.dial(t)
	wantGoAway(t, idle, 1<<31-1)
}

// TestALongHeadNeedsRoom as it comes, and one that does not end gives way to other clients.
func TestALongHeadNeedsRoom(t *testing.T) {
	t.Run("there is none", func(t *testing.T) {
		c := serveBusy(t, membudget.ServerBytes).dial(t)
		if status, closes := ask(t, c, "GET / HTTP/1.1\r\nHost: a\r\nX-Filler: "+strings.Repeat("x", 20<<10)); status != http.StatusServiceUnavailable || !closes {
			t.Errorf("got %d, closes: %v", status, closes)
		}
		wantEnd(t, c)
	})
	t.Run("it gives way", func(t *testing.T) {
		s := serveBusy(t, 5*membudget.ServerBytes/2)
		slow := s.dial(t)
		_, _ = io.WriteString(slow, "GET / HTTP/1.1\r\nHost: a\r\nX-Filler: "+strings.Repeat("x", 10<<10))
		until(t, "the head does not come", func() bool { return s.memory.Taken(membudget.Heads) > 0 })
		s.dial(t)
		if status, closes := ask(t, slow, ""); status != http.StatusServiceUnavailable || !closes {
			t.Errorf("got %d, closes: %v", status, closes)
		}
		until(t, "it is not counted", func() bool { _, heads := s.memory.Closed(); return heads == 1 })
	})
}

// TestTheRoomOfAHeadIsFreeBehindItsAnswer, and that of a connection behind its end.
func TestTheRoomOfAHeadIsFreeBehindItsAnswer(t *testing.T) {
	s := serveBusy(t, 1<<20)
	before := s.memory.Taken(membudget.Connections)
	c := s.dial(t)
	if status, _ := ask(t, c, "GET / HTTP/1.1\r\nHost: a\r\nX-Filler: "+strings.Repeat("x", 20<<10)+"\r\n\r\n"); status != http.StatusOK {
		t.Fatalf("got %d", status)
	}
	until(t, "the head is not given back", func() bool { return s.memory.Taken(membudget.Heads) == 0 })
	c.Close()
	until(t, "the connection is not given back", func() bool { return s.memory.Taken(membudget.Connections) == before })
}

func until(t *testing.T, complaint string, ok func() bool) {
	t.Helper()
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for late := time.After(time.Minute); !ok(); {
		select {
		case <-tick.C:
		case <-late:
			t.Fatal(complaint)
		}
	}
}
