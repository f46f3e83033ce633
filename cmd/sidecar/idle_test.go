package main

import (
	"bufio"
	"io"
	"net"
	"net/http"
	"testing"
	"time"

	"github.com/weir-dev/weir/internal/sidecar/membudget"
)

// A kept is a connection that asks now and then.
type kept struct {
	net.Conn
	answers *bufio.Reader
}

// TestTenThousandIdleConnectionsAreKept in the memory of the container, with room for a thousand more that
// are not idle: none is closed.
func TestTenThousandIdleConnectionsAreKept(t *testing.T) {
	const number, busy, taken = 11_000, 1_000, `weir_sidecar_memory_taken_bytes{class="connections"}`
	s := start(t, build(t), len(floods)+2, nil)
	all := make([]kept, 0, number)
	for len(all) < number {
		for i := range busy {
			all = append(all, s.keep(t, byte(1+i%8)))
		}
		parked := float64(len(all)*membudget.ParkedBytes + 4*membudget.ServerBytes)
		until(t, "connections are not parked", func() bool { return s.figure(t, taken) <= parked })
	}
	active := float64((number-busy)*membudget.ParkedBytes + busy*membudget.ConnectionBytes)
	until(t, "the others are not active at once", func() bool {
		for _, c := range all[:busy] {
			c.ask(t)
		}
		return s.figure(t, taken) >= active
	})
	for _, state := range []string{"idle", "head"} {
		if n := s.figure(t, `weir_sidecar_closed_connections_total{state="`+state+`"}`); n > 0 {
			t.Errorf("%.0f connections were closed for others (%s)", n, state)
		}
	}
	s.staysWithin(t)
}

// keep opens a connection from an address, over which a request was answered.
func (s *program) keep(t *testing.T, address byte) kept {
	t.Helper()
	dialer := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.IPv4(127, 78, 0, address)}}
	c, err := dialer.DialContext(t.Context(), "tcp", s.inbound())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	k := kept{c, bufio.NewReaderSize(c, 256)}
	k.ask(t)
	return k
}

// ask wants a request to be answered.
func (k kept) ask(t *testing.T) {
	t.Helper()
	_ = k.SetDeadline(time.Now().Add(patience))
	if _, err := io.WriteString(k, "GET / HTTP/1.1\r\nHost: a\r\n\r\n"); err != nil {
		t.Fatal(err)
	}
	res, err := http.ReadResponse(k.answers, nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := io.Copy(io.Discard, res.Body); err != nil || res.StatusCode != http.StatusOK {
		t.Fatalf("got %s, %v", res.Status, err)
	}
}
