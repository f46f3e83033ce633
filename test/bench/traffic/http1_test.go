package traffic

import (
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/weir-dev/weir/test/bench/app"
)

// serve serves the app, and counts what it is asked.
func serve(t *testing.T, windows int) (address string, asked *atomic.Int64) {
	t.Helper()
	asked = new(atomic.Int64)
	s := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked.Add(1)
		app.Handle(w, r)
	}))
	s.Config.Protocols = new(http.Protocols)
	s.Config.Protocols.SetHTTP1(true)
	s.Config.Protocols.SetUnencryptedHTTP2(true)
	s.Config.HTTP2 = &http.HTTP2Config{MaxReceiveBufferPerStream: windows, MaxReceiveBufferPerConnection: windows}
	s.Start()
	t.Cleanup(s.Close)
	return s.Listener.Addr().String(), asked
}

var get = []byte("GET / HTTP/1.1\r\nHost: app.example\r\n\r\n")

// TestAClosedLoopCountsRequests, at least one of each connection.
func TestAClosedLoopCountsRequests(t *testing.T) {
	address, asked := serve(t, 0)
	all, err := DialHTTP1(address, 4, get)
	if err != nil {
		t.Fatal(err)
	}
	defer all.Close()
	if asked.Load() != 4 {
		t.Errorf("%d requests when the connections were opened", asked.Load())
	}
	for _, until := range []time.Time{{}, time.Now().Add(20 * time.Millisecond)} {
		before := asked.Load()
		answered, err := all.Closed(until)
		if sent := int(asked.Load() - before); err != nil || answered != sent || sent < 4 {
			t.Errorf("%d of %d requests were answered, %v", answered, sent, err)
		}
	}
}

// TestAnOpenLoopSendsWhatIsDue, though it has more connections than requests, or fewer.
func TestAnOpenLoopSendsWhatIsDue(t *testing.T) {
	for _, n := range []int{1, 3, 50} {
		address, asked := serve(t, 0)
		all, err := DialHTTP1(address, n, []byte("GET /64k HTTP/1.1\r\nHost: app.example\r\n\r\n"))
		if err != nil {
			t.Fatal(err)
		}
		before := asked.Load()
		took, err := all.Open(1000, 40*time.Millisecond)
		if sent := asked.Load() - before; err != nil || sent != 40 || len(took) != 40 || !slices.IsSorted(took) || took[0] <= 0 {
			t.Errorf("%d connections: %d requests took %v, %v", n, sent, took, err)
		}
		all.Close()
	}
}

// TestAnAnswerThatIsNotOneEndsALoop.
func TestAnAnswerThatIsNotOneEndsALoop(t *testing.T) {
	for answer, want := range map[string]string{
		"HTTP/1.1 503 Service Unavailable\r\nContent-Length: 0\r\n\r\n": "answered",
		"HTTP/1.1 200 OK\r\n\r\n":                       "no length",
		"HTTP/1.1 200 OK\r\nContent-Length: x\r\n\r\n":  "invalid syntax",
		"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nx": "EOF",
	} {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		go func() {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			_, _ = conn.Read(make([]byte, 1000))
			_, _ = conn.Write([]byte(answer))
			_ = conn.Close()
		}()
		if all, err := DialHTTP1(l.Addr().String(), 1, get); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, %v", answer, all, err)
		}
		l.Close()
	}
}
