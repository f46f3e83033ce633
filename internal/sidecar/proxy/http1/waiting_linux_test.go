package http1

import (
	"math/rand/v2"
	"net"
	"net/http"
	"net/netip"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/weir-dev/weir/internal/sidecar/membudget"
)

const postRoot = "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\n\r\nx"

// parkingWorld parks connections as soon as they are idle, and closes them after that time.
func parkingWorld(t *testing.T, size int64, idle time.Duration) *world {
	t.Helper()
	return newWorld(t, size, say(fine), func(s *Server) { s.rest, s.slack, s.idle = time.Millisecond, 0, idle })
}

func (w *world) wantTaken(want int64) {
	w.Helper()
	w.until("connections take something else", func() bool { return w.memory.Taken(membudget.Connections) == want })
}

// TestAParkedConnectionGoesOn with what may follow, and is parked again.
func TestAParkedConnectionGoesOn(t *testing.T) {
	for name, tc := range map[string]struct{ first, then string }{
		"a request":                   {getRoot, getRoot},
		"a body":                      {getRoot, postRoot},
		"an empty line behind a body": {postRoot, "\r\n" + getRoot},
		"two requests":                {getRoot, getRoot + getRoot},
	} {
		t.Run(name, func(t *testing.T) {
			w := parkingWorld(t, 1<<20, time.Hour)
			c, in := w.dial()
			w.ask(c, in, tc.first)
			w.wantTaken(membudget.ParkedBytes)
			w.write(c, tc.then)
			for range strings.Count(tc.then, "\r\n\r\n") {
				if res, _ := w.read(in, http.MethodGet); res.StatusCode != http.StatusOK {
					t.Fatalf("got %s", res.Status)
				}
			}
			w.wantTaken(membudget.ParkedBytes)
			w.write(c, getRoot[:20])
			w.wantTaken(membudget.ConnectionBytes)
			if status := w.ask(c, in, getRoot[20:]); status != http.StatusOK {
				t.Errorf("got %d then", status)
			}
		})
	}
}

// TestAParkedConnectionIsStillChecked, and is not a new one: another protocol is one that
// follows a request.
func TestAParkedConnectionIsStillChecked(t *testing.T) {
	for name, then := range map[string]string{
		"the preface of HTTP/2":         "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
		"an empty line":                 "\r\n" + getRoot,
		"a line that ends in a bare LF": "GET / HTTP/1.1\nHost: a\r\n\r\n",
	} {
		t.Run(name, func(t *testing.T) {
			w := parkingWorld(t, 1<<20, time.Hour)
			c, in := w.dial()
			w.ask(c, in, getRoot)
			w.wantTaken(membudget.ParkedBytes)
			if status := w.ask(c, in, then); status != http.StatusBadRequest {
				t.Errorf("got %d", status)
			}
			w.wantEnd(in)
			c.Close()
			w.wantTaken(0)
		})
	}
}

// TestNothingIsLostWhenAConnectionIsParked: requests come about when connections are parked.
func TestNothingIsLostWhenAConnectionIsParked(t *testing.T) {
	w := parkingWorld(t, 1<<30, time.Hour)
	var clients sync.WaitGroup
	for i := range uint64(8) {
		c, in := w.dial()
		clients.Go(func() {
			dice := rand.New(rand.NewPCG(1, i))
			for range 100 {
				if _, err := c.Write([]byte(getRoot)); err != nil {
					t.Error(err)
					return
				}
				res, err := http.ReadResponse(in, nil)
				if err != nil {
					t.Error(err)
					return
				}
				_, _ = in.Discard(int(res.ContentLength))
				pause := time.NewTimer(time.Duration(dice.Int64N(int64(time.Millisecond))))
				<-pause.C
			}
		})
	}
	clients.Wait()
}

// nobody is a connection that cannot give way.
type nobody struct{}

func (nobody) Pending() bool { return false }
func (nobody) Yield(bool)    {}

// TestAParkedConnectionEnds with its client, its idle time, its server and for others, and gives back
// what it took.
func TestAParkedConnectionEnds(t *testing.T) {
	for name, end := range map[string]func(*world, net.Conn){
		"with its client":                       func(_ *world, c net.Conn) { c.Close() },
		"with the end of what its client sends": func(_ *world, c net.Conn) { _ = c.(*net.TCPConn).CloseWrite() }, //nolint:forcetypeassert // it was dialled
		"with its server":                       func(w *world, _ net.Conn) { w.server.Close() },
		"with its idle time":                    func(*world, net.Conn) {},
		"for others": func(w *world, _ net.Conn) {
			for n := byte(1); w.memory.Taken(membudget.Connections) > 0; n++ {
				other, ok := w.memory.Port(true).Connect(netip.AddrFrom4([4]byte{10, 0, 0, n}), time.Hour, nobody{})
				if ok {
					defer other.Close()
					other.Active()
				}
				if idle, _ := w.memory.Closed(); idle > 0 {
					return
				}
				if !ok {
					w.Fatal("it does not give way")
				}
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			idle := time.Hour
			if name == "with its idle time" {
				idle = 50 * time.Millisecond
			}
			w := parkingWorld(t, 1<<20, idle)
			c, in := w.dial()
			w.ask(c, in, getRoot)
			if name != "with its idle time" {
				w.wantTaken(membudget.ParkedBytes)
			}
			end(w, c)
			if name != "with its client" {
				w.wantEnd(in)
			}
			w.wantTaken(0)
		})
	}
}
