package servers

import (
	"context"
	"fmt"
	"net"
	"os/exec"
	"strings"
	"time"

	"github.com/weir-dev/weir/internal/devcluster/process"
)

// A Server is one running store. Kill it when it is no longer needed.
type Server struct {
	*process.Process
	Address string // host:port on the loopback interface
	remove  func() // its data
}

// Kill ends the server at once and removes its data.
func (s *Server) Kill() {
	s.Process.Kill()
	if s.remove != nil {
		s.remove()
	}
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
