// Package freeport finds TCP ports for servers of tests and of development.
package freeport

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"syscall"
)

// The ports lie below those that the kernel lends to outgoing connections (32768 and up
// on Linux) and below the NodePorts of Kubernetes (30000 and up). A port that is free
// stays so until its server starts, and while the server restarts.
const (
	first = 10_000
	end   = 30_000
)

// tries is how many ports are looked at before there seems to be none.
const tries = 200

// claims are the files that say which ports this process has. The kernel gives them up
// when it ends.
var claims struct {
	sync.Mutex

	files []*os.File
}

// Port returns a port of the loopback address that nothing listens on. No later call,
// of any process, returns it while this process lives.
func Port() (int, error) {
	claims.Lock()
	defer claims.Unlock()
	last := errors.New("other processes have them all")
	for range tries {
		port := first + rand.IntN(end-first)
		claimed, err := claim(port)
		if err != nil {
			return 0, fmt.Errorf("find a free port: %w", err)
		}
		if !claimed {
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
		return port, nil
	}
	return 0, fmt.Errorf("find a free port from %d to %d: %w", first, end-1, last)
}

// claim reports whether the port is this process's now, and was not before.
func claim(port int) (bool, error) {
	dir := filepath.Join(os.TempDir(), "weir-ports")
	if err := os.MkdirAll(dir, 0o777); err != nil {
		return false, err
	}
	file, err := os.OpenFile(filepath.Join(dir, strconv.Itoa(port)), os.O_CREATE|os.O_RDWR, 0o666)
	if err != nil {
		return false, err
	}
	if err := syscall.Flock(int(file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		return false, file.Close()
	}
	claims.files = append(claims.files, file)
	return true, nil
}

// Address returns the loopback address with such a port.
func Address() (string, error) {
	port, err := Port()
	return net.JoinHostPort("127.0.0.1", strconv.Itoa(port)), err
}
