package sidecar

import (
	"bufio"
	"io"
	"log/slog"
	"net"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/weir-dev/weir/internal/sidecar/membudget"
)

// A oneListener accepts one connection, which a test has made.
type oneListener struct {
	net.Listener
	conns chan net.Conn
}

func (l oneListener) Accept() (net.Conn, error) {
	if c, ok := <-l.conns; ok {
		return c, nil
	}
	return nil, net.ErrClosed
}

func (l oneListener) Close() error { return nil }

// serveOnce has a handler serve one request over a connection in memory, and returns the answer and when
// it came.
func serveOnce(t *testing.T, h http.HandlerFunc, request string) (status int, after time.Duration) {
	t.Helper()
	ours, theirs := net.Pipe()
	l := oneListener{conns: make(chan net.Conn, 1)}
	l.conns <- theirs
	s := serveOn(t.Context(), l, h, prometheus.NewCounter(prometheus.CounterOpts{Name: "malformed"}), slog.New(slog.DiscardHandler), membudget.New(1<<40).Port(false))
	go func() { _ = s.serve() }()
	defer s.close()
	defer close(l.conns)
	defer ours.Close()
	began := time.Now()
	if _, err := io.WriteString(ours, request); err != nil {
		t.Fatal(err)
	}
	answer, err := http.ReadResponse(bufio.NewReader(ours), nil)
	if err != nil {
		t.Fatal(err)
	}
	_ = answer.Body.Close()
	return answer.StatusCode, time.Since(began)
}

// TestABodyHasToComeInTime, whether its handler reads it or not: what it leaves is read before the answer is sent.
func TestABodyHasToComeInTime(t *testing.T) {
	for name, h := range map[string]http.HandlerFunc{
		"read": func(w http.ResponseWriter, r *http.Request) {
			if _, err := io.ReadAll(r.Body); err != nil {
				w.WriteHeader(http.StatusBadRequest)
			}
		},
		"left": func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusBadRequest) },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				status, after := serveOnce(t, h, "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 100\r\n\r\nhello")
				if status != http.StatusBadRequest || after != bodyTimeout {
					t.Errorf("status %d after %v", status, after)
				}
			})
		})
	}
}

// TestARequestMayTakeLongBehindItsBody.
func TestARequestMayTakeLongBehindItsBody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		status, _ := serveOnce(t, func(w http.ResponseWriter, r *http.Request) {
			_, _ = io.ReadAll(r.Body)
			select {
			case <-time.After(2 * bodyTimeout):
			case <-r.Context().Done():
				w.WriteHeader(http.StatusRequestTimeout)
			}
		}, plainPost)
		if status != http.StatusOK {
			t.Errorf("status %d", status)
		}
	})
}
