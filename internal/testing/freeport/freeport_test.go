package freeport_test

import (
	"net"
	"testing"

	"github.com/weir-dev/weir/internal/testing/freeport"
)

// TestPorts asks for many ports: none comes twice, each can be listened on, and
// none is one that the kernel lends to connections.
func TestPorts(t *testing.T) {
	seen := map[string]bool{}
	for range 300 {
		address, err := freeport.Address()
		if err != nil {
			t.Fatal(err)
		}
		if seen[address] {
			t.Fatalf("%s came twice", address)
		}
		seen[address] = true
		l, err := net.Listen("tcp", address)
		if err != nil {
			t.Fatal(err)
		}
		defer l.Close()
		if port := l.Addr().(*net.TCPAddr).Port; port >= 30_000 {
			t.Errorf("port %d may be lent to a connection", port)
		}
	}
}
