package servers

import (
	"context"
	"fmt"
	"net"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/weir-dev/weir/internal/testing/devcluster/process"
)

// A Server is one running store. Kill it when it is no longer needed.
type Server struct {
	*process.Process
	Address string // host:port on the loopback interface
	spec    spec
	remove  func() // its data
	data    string // directory of a Postgres
}

// Kill ends the server at once and removes its data.
func (s *Server) Kill() {
	s.Process.Kill()
	if s.remove != nil {
		s.remove()
	}
}

// Restart starts the server again, which has ended or is killed for it, at its address
// and on the data that it kept. It returns when the server is ready.
func (s *Server) Restart(ctx context.Context) error {
	s.Process.Kill()
	_, err := s.start(ctx, s.spec)
	return err
}

// start runs a program as the server and returns when it is ready.
func (s *Server) start(ctx context.Context, of spec) (*Server, error) {
	s.spec = of
	started, err := of.start()
	if err != nil {
		return nil, err
	}
	s.Process = started
	if err := s.await(ctx, of); err != nil {
		s.Process.Kill()
		return nil, fmt.Errorf("%s: %w", filepath.Base(of.path), err)
	}
	return s, nil
}

// Port returns the port of the address.
func (s *Server) Port() string { return s.Address[strings.LastIndexByte(s.Address, ':')+1:] }

// await returns when the server is ready.
func (s *Server) await(ctx context.Context, of spec) error {
	ready := of.ready
	if ready == nil {
		ready = s.listens
	}
	for {
		if ready(ctx) == nil {
			return nil
		}
		select {
		case <-s.Done():
			return fmt.Errorf("it ended, see %s", of.log)
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// listens returns nil when the server takes connections.
func (s *Server) listens(ctx context.Context) error {
	conn, err := new(net.Dialer).DialContext(ctx, "tcp", s.Address)
	if err != nil {
		return err
	}
	return conn.Close()
}

// find returns the path of a program, which may also be in one of the directories.
func find(program string, directories ...string) (string, error) {
	path, err := exec.LookPath(program)
	for _, dir := range directories {
		if err == nil {
			break
		}
		path, err = exec.LookPath(dir + "/" + program)
	}
	if err != nil {
		return "", fmt.Errorf("%s is not installed; `make deps` installs it", program)
	}
	return path, nil
}
