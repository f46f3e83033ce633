package framing

import (
	"bufio"
	"io"
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

// soon is the time after which idle connections are parked in tests.
const soon = time.Millisecond

const postRoot = "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\n\r\nx"

// parked returns a client whose connection was parked behind a request, and what was taken
// before it came.
func (s busyServer) parked(t *testing.T, request string) (c net.Conn, before int64) {
	t.Helper()
	before = s.memory.Taken(membudget.Connections)
	c = s.dial(t)
	if status, _ := ask(t, c, request); status != http.StatusOK {
		t.Fatalf("got %d", status)
	}
	s.wantTaken(t, before+membudget.WaitingBytes)
	return c, before
}

// fill takes the memory that is left for connections, and returns what has another one come.
func (s busyServer) fill(t *testing.T) (one func() bool) {
	t.Helper()
	port, n := s.memory.Port(true).Of(membudget.ServerBytes), byte(0)
	one = func() bool {
		n++
		c, ok := port.Connect(netip.AddrFrom4([4]byte{10, 0, 1, n}), 0, nobody{})
		return ok && c.Active()
	}
	for s.memory.Taken(membudget.Connections)+membudget.ServerBytes <= s.memory.Size() {
		if !one() {
			t.Fatal("there is no memory for another connection")
		}
	}
	return one
}

func (s busyServer) wantTaken(t *testing.T, want int64) {
	t.Helper()
	until(t, "connections take something else", func() bool { return s.memory.Taken(membudget.Connections) == want })
}

// TestAParkedConnectionGoesOn with what may follow, and is parked again.
func TestAParkedConnectionGoesOn(t *testing.T) {
	for name, tc := range map[string]struct{ first, then string }{
		"a request":                   {getRoot, getRoot},
		"a body":                      {getRoot, postRoot},
		"an empty line behind a body": {postRoot, "\r\n" + getRoot},
		"two requests":                {getRoot, getRoot + getRoot},
		"a part of a request":         {getRoot, getRoot[:20]},
	} {
		t.Run(name, func(t *testing.T) {
			s := serveParking(t, 1<<20, soon, time.Hour)
			c, before := s.parked(t, tc.first)
			answers, rest := strings.Count(tc.then, "\r\n\r\n"), ""
			if answers == 0 {
				answers, rest = 1, getRoot[len(tc.then):]
			}
			if _, err := io.WriteString(c, tc.then); err != nil {
				t.Fatal(err)
			}
			for in := bufio.NewReader(c); answers > 0; answers-- {
				if rest != "" {
					s.wantTaken(t, before+membudget.ServerBytes)
				}
				if _, err := io.WriteString(c, rest); err != nil {
					t.Fatal(err)
				}
				res, err := http.ReadResponse(in, nil)
				if err != nil {
					t.Fatal(err)
				}
				if _, err := io.Copy(io.Discard, res.Body); err != nil || res.StatusCode != http.StatusOK {
					t.Fatalf("got %d, %v", res.StatusCode, err)
				}
			}
			s.wantTaken(t, before+membudget.WaitingBytes)
			if status, _ := ask(t, c, getRoot); status != http.StatusOK {
				t.Errorf("got %d then", status)
			}
		})
	}
}

// TestAParkedConnectionIsStillChecked, and is not a new one: another protocol is one that
// follows a request.
func TestAParkedConnectionIsStillChecked(t *testing.T) {
	for name, then := range map[string]string{
		"the preface of HTTP/2":         Preface,
		"an empty line":                 "\r\n" + getRoot,
		"a line that ends in a bare LF": "GET / HTTP/1.1\nHost: a\r\n\r\n",
		"two lengths of a body":         "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
	} {
		t.Run(name, func(t *testing.T) {
			s := serveParking(t, 1<<20, soon, time.Hour)
			c, before := s.parked(t, getRoot)
			_, _ = io.WriteString(c, then)
			res, err := http.ReadResponse(bufio.NewReader(c), nil) // one that was closed first is not an answer
			if err == nil && res.StatusCode != http.StatusBadRequest {
				t.Errorf("got %d", res.StatusCode)
			}
			s.wantTaken(t, before)
		})
	}
}

// TestAnEmptyLineMayComeInTwoParts behind a body.
func TestAnEmptyLineMayComeInTwoParts(t *testing.T) {
	s := serveParking(t, 1<<20, soon, time.Hour)
	c, before := s.parked(t, postRoot)
	_, _ = io.WriteString(c, "\r")
	s.wantTaken(t, before+membudget.ServerBytes)
	if status, _ := ask(t, c, "\n"+getRoot); status != http.StatusOK {
		t.Errorf("got %d", status)
	}
}

// TestAConnectionIsNotParkedInTheMiddle of the head of its next request.
func TestAConnectionIsNotParkedInTheMiddle(t *testing.T) {
	s := serveParking(t, 1<<20, soon, time.Hour)
	before := s.memory.Taken(membudget.Connections)
	c := s.dial(t)
	if status, _ := ask(t, c, getRoot+"GE"); status != http.StatusOK {
		t.Fatalf("got %d", status)
	}
	pause := time.NewTimer(50 * soon)
	<-pause.C
	s.wantTaken(t, before+membudget.ServerBytes)
	if status, _ := ask(t, c, "T / HTTP/1.1\r\nHost: a\r\n\r\n"); status != http.StatusOK {
		t.Errorf("the rest got %d", status)
	}
}

// TestNothingIsLostWhenAConnectionIsParked: requests come about when connections are parked.
func TestNothingIsLostWhenAConnectionIsParked(t *testing.T) {
	s := serveParking(t, 1<<30, soon, time.Hour)
	var clients sync.WaitGroup
	for i := range uint64(16) {
		c := s.dial(t)
		clients.Go(func() {
			dice := rand.New(rand.NewPCG(1, i))
			for range 100 {
				if _, err := io.WriteString(c, getRoot); err != nil {
					t.Error(err)
					return
				}
				if _, err := io.ReadAtLeast(c, make([]byte, 4<<10), len("HTTP/1.1 200 OK\r\n\r\n")); err != nil {
					t.Error(err)
					return
				}
				pause := time.NewTimer(soon/2 + time.Duration(dice.Int64N(int64(soon))))
				<-pause.C
			}
		})
	}
	clients.Wait()
}

// TestAParkedConnectionEnds with its client, its idle time, its listener and for others, and
// gives back what it took.
func TestAParkedConnectionEnds(t *testing.T) {
	for name, end := range map[string]func(*testing.T, busyServer, net.Conn){
		"with its client": func(_ *testing.T, _ busyServer, c net.Conn) { c.Close() },
		"with the end of what its client sends": func(t *testing.T, _ busyServer, c net.Conn) {
			if err := c.(*net.TCPConn).CloseWrite(); err != nil { //nolint:forcetypeassert // it was dialled
				t.Error(err)
			}
			wantEnd(t, c)
		},
		"with the listener": func(t *testing.T, s busyServer, c net.Conn) {
			if err := s.server.Listener.Close(); err != nil {
				t.Error(err)
			}
			wantEnd(t, c)
		},
		"for others": func(t *testing.T, s busyServer, c net.Conn) {
			if another := s.fill(t); !another() {
				t.Error("it does not give way")
			}
			wantEnd(t, c)
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := serveParking(t, 1<<20+membudget.WaitingBytes, soon, time.Hour)
			c, before := s.parked(t, getRoot)
			end(t, s, c)
			if name != "for others" {
				s.wantTaken(t, before)
			}
		})
	}
	t.Run("with its idle time", func(t *testing.T) {
		s := serveParking(t, 1<<20, soon, 50*soon)
		c, before := s.parked(t, getRoot)
		wantEnd(t, c)
		s.wantTaken(t, before)
	})
}

// TestAParkedConnectionWithoutMemoryIsAnswered when a request comes over it.
func TestAParkedConnectionWithoutMemoryIsAnswered(t *testing.T) {
	s := serveParking(t, 1<<20, soon, time.Hour)
	c, _ := s.parked(t, getRoot)
	s.fill(t)
	if status, closes := ask(t, c, getRoot); status != http.StatusServiceUnavailable || !closes {
		t.Errorf("got %d, closes: %v", status, closes)
	}
	wantEnd(t, c)
}
