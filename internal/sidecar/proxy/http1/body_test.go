package http1

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/weir-dev/weir/internal/sidecar/membudget"
)

// echo answers with the body of the request, in chunks where that came in chunks.
func echo(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return
	}
	if r.ContentLength >= 0 {
		w.Header().Set("Content-Length", fmt.Sprint(len(body)))
	}
	_, _ = w.Write(body)
}

// TestBodiesOfAnyLengthPass whole, both ways and one behind the other, also where memory is short.
func TestBodiesOfAnyLengthPass(t *testing.T) {
	app := httptest.NewServer(http.HandlerFunc(echo))
	defer app.Close()
	data := make([]byte, 1<<20)
	for i := range data {
		data[i] = byte(i * 7 >> 3)
	}
	for name, size := range map[string]int64{"memory is free": 1 << 30, "memory is short": 1} {
		for coding, chunked := range map[string]bool{"a length": false, "chunks": true} {
			t.Run(name+", "+coding, func(t *testing.T) {
				memory := membudget.New(size)
				w := newWorld(t, 1<<30, say(fine), func(s *Server) {
					s.cfg.Memory, s.buffers.memory = memory, memory
					s.cfg.Dial = func(ctx context.Context) (net.Conn, error) {
						return new(net.Dialer).DialContext(ctx, "tcp", app.Listener.Addr().String())
					}
					s.cfg.DialRoomy = s.cfg.Dial
				})
				c, in := w.dial()
				for _, n := range []int{0, 1, firstBytes, linkBytes - 200, linkBytes, 64 << 10, largeBytes - 1, largeBytes, largeBytes + 1, mostNow + 1, len(data)} {
					r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://a/", bytes.NewReader(data[:n]))
					if err != nil {
						t.Fatal(err)
					}
					if chunked {
						r.ContentLength = -1
					}
					if err := r.Write(c); err != nil {
						t.Fatal(err)
					}
					if _, got := w.read(in, http.MethodPost); got != string(data[:n]) {
						t.Fatalf("of %d bytes %d come back", n, len(got))
					}
				}
				w.server.Close()
				if n := memory.Taken(membudget.Bodies); n != 0 {
					t.Errorf("%d bytes are not given back", n)
				}
			})
		}
	}
}

// TestRoomyConnectionsAreForFreeMemory, never for tunnels, and are kept apart from others.
func TestRoomyConnectionsAreForFreeMemory(t *testing.T) {
	memory := membudget.New(8 * membudget.RoomyBytes)
	var plain, roomy atomic.Int64
	w := newWorld(t, 1<<30, say(fine), func(s *Server) {
		s.cfg.Memory = memory
		dial := s.cfg.Dial
		counted := func(n *atomic.Int64) func(context.Context) (net.Conn, error) {
			return func(ctx context.Context) (net.Conn, error) {
				n.Add(1)
				return dial(ctx)
			}
		}
		s.cfg.Dial, s.cfg.DialRoomy = counted(&plain), counted(&roomy)
	})
	c, in := w.dial()
	// Kept connections end after a second, so others may have to be opened, but of the same kind.
	for _, tc := range []struct {
		when, request    string
		taken            int64
		noPlain, noRoomy bool
	}{
		{"memory is free", getRoot, 0, true, false},
		{"memory is short", getRoot, 2 * membudget.RoomyBytes, false, true},
		{"memory is free again", getRoot, 0, true, false},
		{"a tunnel", "GET / HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n", 0, false, true},
	} {
		if !memory.TakeSpare(membudget.Bodies, tc.taken) {
			t.Fatal("there is no memory")
		}
		p, r := plain.Load(), roomy.Load()
		w.ask(c, in, tc.request)
		memory.Give(membudget.Bodies, tc.taken)
		if p, r = plain.Load()-p, roomy.Load()-r; tc.noPlain && p > 0 || tc.noRoomy && r > 0 || tc.taken > 0 && p == 0 {
			t.Errorf("%s: %d plain connections and %d roomy ones are opened", tc.when, p, r)
		}
	}
	if roomy.Load() == 0 {
		t.Error("none is roomy")
	}
	w.server.Close()
	if n := memory.Taken(membudget.Bodies); n != 0 {
		t.Errorf("%d bytes are not given back", n)
	}
}

// TestAConnectionIsWideForLargeBodiesWhileMemoryIsFree: each request over it takes memory for that, or
// it is not wide any more.
func TestAConnectionIsWideForLargeBodiesWhileMemoryIsFree(t *testing.T) {
	memory := membudget.New(4 * membudget.WideBytes)
	taken := make(chan int64, 1)
	w := newWorld(t, 1<<30, func(c net.Conn, n int) bool {
		taken <- memory.Taken(membudget.Bodies)
		return say(fine)(c, n)
	}, func(s *Server) { s.cfg.Memory = memory })
	c, in := w.dial()
	post := func(n int) string {
		return fmt.Sprintf("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: %d\r\n\r\n%s", n, strings.Repeat("x", n))
	}
	for _, tc := range []struct {
		when, request string
		other, want   int64
	}{
		{"no body", getRoot, 0, 0},
		{"a small body", post(1 << 10), 0, 0},
		{"memory is short", post(64 << 10), 1, 0},
		{"a large body", post(64 << 10), 0, membudget.WideBytes},
		{"no body, over a wide connection", getRoot, 0, membudget.WideBytes},
		{"memory is short again", getRoot, 1, 0},
		{"no body, over one that is not wide any more", getRoot, 0, 0},
		{"another large body", post(64 << 10), 0, membudget.WideBytes},
	} {
		if !memory.TakeSpare(membudget.Requests, tc.other) {
			t.Fatal("there is no memory")
		}
		w.ask(c, in, tc.request)
		memory.Give(membudget.Requests, tc.other)
		if got := <-taken; got != tc.want {
			t.Errorf("%s: %d bytes are taken, want %d", tc.when, got, tc.want)
		}
	}
	w.server.Close()
	if n := memory.Taken(membudget.Bodies); n != 0 {
		t.Errorf("%d bytes are not given back", n)
	}
}
