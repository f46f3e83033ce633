package servers

import (
	"context"
	"fmt"
	"net"
	"os"
	"path/filepath"

	"github.com/weir-dev/weir/internal/testing/freeport"
)

// Redis starts a redis-server that keeps nothing on disk; it logs to
// redis-server.log in the directory.
func Redis(ctx context.Context, logs string) (*Server, error) {
	return RedisWith(ctx, logs, nil)
}

// RedisWith is Redis with variables added to its environment, as KEY=value, and
// arguments that win over those of Redis. The server has a directory of its own for what
// they make it keep.
func RedisWith(ctx context.Context, logs string, env []string, args ...string) (s *Server, err error) {
	program, err := find("redis-server")
	if err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp("", "weir-redis-")
	if err != nil {
		return nil, err
	}
	s = &Server{remove: func() { _ = os.RemoveAll(dir) }}
	defer func() {
		if err != nil {
			s.remove()
		}
	}()
	if s.Address, err = freeport.Address(); err != nil {
		return nil, err
	}
	return s.start(ctx, spec{
		path: program, log: filepath.Join(logs, "redis-server.log"), env: env,
		args: append([]string{
			"--port", s.Port(), "--bind", "127.0.0.1", "--save", "", "--appendonly", "no",
			"--dir", dir, "--maxmemory-policy", "noeviction",
		}, args...),
	})
}

// Sentinel starts a server that watches a primary under a name, and lets a replica of it
// take over when a quorum of Sentinels gets no answer from it for half a second. It logs
// to redis-server.log in the directory.
func Sentinel(ctx context.Context, logs, name, primary string, quorum int) (s *Server, err error) {
	program, err := find("redis-server")
	if err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp("", "weir-sentinel-")
	if err != nil {
		return nil, err
	}
	s = &Server{remove: func() { _ = os.RemoveAll(dir) }}
	defer func() {
		if err != nil {
			s.remove()
		}
	}()
	if s.Address, err = freeport.Address(); err != nil {
		return nil, err
	}
	host, port, err := net.SplitHostPort(primary)
	if err != nil {
		return nil, err
	}
	file := filepath.Join(dir, "sentinel.conf") // it keeps what it learns in it
	lines := fmt.Sprintf("port %s\nbind 127.0.0.1\ndir %s\nsentinel monitor %s %s %s %d\n"+
		"sentinel down-after-milliseconds %s 500\nsentinel failover-timeout %s 3000\n", s.Port(), dir, name, host, port, quorum, name, name)
	if err := os.WriteFile(file, []byte(lines), 0o600); err != nil {
		return nil, err
	}
	return s.start(ctx, spec{path: program, log: filepath.Join(logs, "redis-server.log"), args: []string{file, "--sentinel"}})
}
