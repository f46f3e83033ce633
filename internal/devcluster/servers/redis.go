package servers

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"github.com/weir-dev/weir/internal/freeport"
)

// Redis starts a redis-server that keeps nothing on disk; it logs to
// redis-server.log in the directory.
func Redis(ctx context.Context, logs string) (*Server, error) {
	program, err := find("redis-server")
	if err != nil {
		return nil, err
	}
	s := &Server{}
	if s.Address, err = freeport.Address(); err != nil {
		return nil, err
	}
	log := filepath.Join(logs, "redis-server.log")
	return s.start(ctx, spec{
		path: program, log: log,
		args: []string{
			"--port", s.Port(), "--bind", "127.0.0.1", "--save", "", "--appendonly", "no",
			"--dir", os.TempDir(), "--maxmemory-policy", "noeviction",
		},
	})
}

func (s *Server) start(ctx context.Context, of spec) (*Server, error) {
	var err error
	if s.Process, err = of.start(); err != nil {
		return nil, err
	}
	if err := s.await(ctx, of); err != nil {
		s.Kill()
		return nil, fmt.Errorf("%s: %w", filepath.Base(of.path), err)
	}
	return s, nil
}
