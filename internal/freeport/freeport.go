// Package freeport finds TCP ports for servers of tests and of development.
package freeport

import (
	"fmt"
	"math/rand/v2"
	"net"
	"strconv"
	"sync"
)

// The ports lie below those that the kernel lends to outgoing connections (32768
// and up on Linux) and below the NodePorts of Kubernetes (30000 and up): a port
// that is free stays so until its server starts, and while the server restarts.
const (
	first = 10_000
	end   = 30_000
)

// tries is how many ports are looked at before there seems to be none.
const tries = 200

var given struct {
	sync.Mutex

	ports map[int]bool
}

// Port returns a port of the loopback address that nothing listens on, and that
// this process did not get before. Processes that ask at the same time choose at
// random among 20,000.
func Port() (int, error) {
	given.Lock()
	defer given.Unlock()
	var last error
	for range tries {
		port := first + rand.IntN(end-first) //nolint:gosec // not a secret
		if given.ports[port] {
			continue
		}
		l, err := net.Listen("tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(port))) //nolint:noctx // returns at once
		if err != nil {
			last = err
			continue
		}
		if err := l.Close(); err != nil {
			return 0, fmt.Errorf("find a free port: %w", err)
		}
		if given.ports == nil {
			given.ports = map[int]bool{}
		}
		given.ports[port] = true
		return port, nil
	}
	return 0, fmt.Errorf("find a free port from %d to %d: %w", first, end-1, last)
}

// Address returns the loopback address with such a port.
func Address() (string, error) {
	port, err := Port()
	return net.JoinHostPort("127.0.0.1", strconv.Itoa(port)), err
}
