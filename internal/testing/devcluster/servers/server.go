package servers

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/weir-dev/weir/internal/testing/devcluster/process"
	"github.com/weir-dev/weir/internal/testing/freeport"
)

// Options say how a server runs. The zero value of each but Logs is a good choice.
type Options struct {
	Logs    string   // directory that the server logs to
	Address string   // host:port on the loopback interface; empty for a free one
	Dir     string   // of its data; empty for a new one, which Kill removes
	Env     []string // variables added to its environment, as KEY=value
	Args    []string // of the server, which win over those that it always has
}

// A Server is one running store. Kill it when it is no longer needed.
type Server struct {
	*process.Process

	Address string // host:port on the loopback interface
	spec    spec
	remove  func() // its data
	data    string // directory of a Postgres
}

// A spec is a program, and the user that it runs as.
type spec struct {
	path, log string
	args, env []string // env is added to that of this process
	as        account
	ready     func(context.Context) error
	sessions  bool // each of its processes has a process group of its own
}

// prepare returns a server that is not started, with an address and a directory.
func (o Options) prepare() (s *Server, dir string, err error) {
	s, dir = &Server{Address: o.Address}, o.Dir
	if dir == "" {
		if dir, err = os.MkdirTemp("", "weir-server-"); err != nil { // where another user can reach it
			return nil, "", err
		}
		s.remove = func() { _ = os.RemoveAll(dir) }
	}
	if s.Address == "" {
		s.Address, err = freeport.Address()
	}
	return s, dir, err
}

// Kill ends the server at once and removes its data.
func (s *Server) Kill() {
	s.Crash()
	s.forget()
}

func (s *Server) forget() {
	if s.remove != nil {
		s.remove()
	}
}

// Restart starts the server again, which has ended or is killed for it, at its address
// and on the data that it kept. It returns when the server is ready.
func (s *Server) Restart(ctx context.Context) error {
	s.Crash()
	return s.start(ctx, s.spec)
}

// start runs a program as the server and returns when it is ready.
func (s *Server) start(ctx context.Context, of spec) (err error) {
	s.spec = of
	s.Process, err = process.Start(process.Spec{
		Path: of.path, Args: of.args, Env: slices.Concat(os.Environ(), of.env), Log: of.log, Credential: of.as.credential,
	})
	if err != nil {
		return err
	}
	if err := s.await(ctx); err != nil {
		s.Crash()
		return fmt.Errorf("%s: %w", filepath.Base(of.path), err)
	}
	return nil
}

// Port returns the port of the address.
func (s *Server) Port() string { return s.Address[strings.LastIndexByte(s.Address, ':')+1:] }

// await returns when the server is ready.
func (s *Server) await(ctx context.Context) error {
	for {
		err := s.spec.ready(ctx)
		if err == nil {
			return nil
		}
		select {
		case <-s.Done():
			text, _ := os.ReadFile(s.spec.log)
			return fmt.Errorf("it ended, see %s: %s", s.spec.log, text[max(0, len(text)-2000):])
		case <-ctx.Done():
			return errors.Join(ctx.Err(), err)
		case <-time.After(10 * time.Millisecond):
		}
	}
}

// find returns the path of a program, which may also be in one of the directories.
func find(program string, directories ...string) (string, error) {
	path, err := exec.LookPath(program)
	for _, dir := range directories {
		if err == nil {
			break
		}
		path, err = exec.LookPath(filepath.Join(dir, program))
	}
	if err != nil {
		return "", fmt.Errorf("%s is not installed; `make deps` installs it", program)
	}
	return path, nil
}

// dial connects to the server.
func (s *Server) dial(ctx context.Context) (net.Conn, error) {
	return new(net.Dialer).DialContext(ctx, "tcp", s.Address)
}
