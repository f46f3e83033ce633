package servers

import (
	"bufio"
	"context"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// Redis starts a redis-server that keeps nothing on disk; it logs to
// redis-server.log in the directory.
func Redis(ctx context.Context, logs string) (*Server, error) {
	return RedisWith(ctx, Options{Logs: logs})
}

// RedisWith is Redis with options. Files that the arguments make the server keep are in its directory.
func RedisWith(ctx context.Context, o Options) (*Server, error) {
	s, dir, err := o.prepare()
	if err != nil {
		return nil, err
	}
	return s.startRedis(ctx, o, slices.Concat([]string{
		"--port", s.Port(), "--bind", "127.0.0.1", "--save", "", "--appendonly", "no",
		"--dir", dir, "--maxmemory-policy", "noeviction",
	}, o.Args))
}

// Sentinel starts a server that watches a primary under a name, and lets a replica of it
// take over when a quorum of Sentinels gets no answer from it for some time. It logs
// to redis-server.log in the directory.
func Sentinel(ctx context.Context, o Options, name, primary string, quorum int, patience time.Duration) (*Server, error) {
	host, port, err := net.SplitHostPort(primary)
	if err != nil {
		return nil, err
	}
	s, dir, err := o.prepare()
	if err != nil {
		return nil, err
	}
	file := filepath.Join(dir, "sentinel.conf") // it keeps what it learns in it
	lines := fmt.Sprintf("port %s\nbind 127.0.0.1\ndir %s\nsentinel monitor %s %s %s %d\n"+
		"sentinel down-after-milliseconds %s %d\nsentinel failover-timeout %s %d\n",
		s.Port(), dir, name, host, port, quorum, name, patience.Milliseconds(), name, 6*patience.Milliseconds())
	if err := os.WriteFile(file, []byte(lines), 0o600); err != nil {
		s.forget()
		return nil, err
	}
	return s.startRedis(ctx, o, []string{file, "--sentinel"})
}

func (s *Server) startRedis(ctx context.Context, o Options, args []string) (*Server, error) {
	program, err := find("redis-server")
	if err == nil {
		err = s.start(ctx, spec{
			path: program, log: filepath.Join(o.Logs, "redis-server.log"), env: o.Env, args: args, ready: s.answers,
		})
	}
	if err != nil {
		s.forget()
		return nil, err
	}
	return s, nil
}

// answers returns nil when a Redis has loaded what it kept, and answers.
func (s *Server) answers(ctx context.Context) error {
	conn, err := s.dial(ctx)
	if err != nil {
		return err
	}
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(time.Second))
	if _, err := conn.Write([]byte("PING\r\n")); err != nil {
		return err
	}
	reply, err := bufio.NewReader(conn).ReadString('\n')
	if err == nil && !strings.HasPrefix(reply, "+PONG") && !strings.HasPrefix(reply, "-NOAUTH") {
		err = fmt.Errorf("it answers %q", strings.TrimSpace(reply))
	}
	return err
}
