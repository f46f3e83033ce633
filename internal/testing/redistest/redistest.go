// Package redistest runs private Redis servers for tests.
package redistest

import (
	"context"
	"io"
	"net"
	"os"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	goredis "github.com/redis/go-redis/v9"

	"github.com/weir-dev/weir/internal/testing/devcluster/servers"
	"github.com/weir-dev/weir/internal/testing/freeport"
)

// startTimeout is how long a server may take to answer after its start.
const startTimeout = 10 * time.Second

// A Server is one redis-server process on a TCP port of the loopback address. It
// persists nothing unless the arguments say so, so a restart forgets everything. Its methods fail the test
// when they cannot do what they say, and belong to the test's goroutine.
type Server struct {
	Addr string // host:port, the same after Restart
	Dir  string // where the process runs

	t       testing.TB
	bus     string // port of a node of a cluster
	args    []string
	env     []string // beside the test's
	process *servers.Server
}

// Start runs a server until the test ends. The arguments follow the settings that
// the package needs, for example "--maxmemory", "2mb".
func Start(t testing.TB, args ...string) *Server {
	t.Helper()
	return newServer(t).start(args...)
}

func newServer(t testing.TB) *Server {
	t.Helper()
	return &Server{Addr: FreeAddr(t), Dir: dir(t), t: t}
}

// dir returns a directory of the test, in memory where there is one: a busy disk must
// not decide how long a server takes to write what it is asked to.
func dir(t testing.TB) string {
	t.Helper()
	path, err := os.MkdirTemp("/dev/shm", "redistest") //nolint:usetesting // t.TempDir is on disk
	if err != nil {
		return t.TempDir()
	}
	t.Cleanup(func() { _ = os.RemoveAll(path) })
	return path
}

func (s *Server) start(args ...string) *Server {
	s.t.Helper()
	s.args = slices.Concat([]string{"--enable-debug-command", "yes", "--repl-diskless-sync-delay", "0"}, args)
	s.run()
	s.t.Cleanup(s.Kill)
	return s
}

func (s *Server) run() {
	s.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), startTimeout)
	defer cancel()
	process, err := servers.RedisWith(ctx, s.options())
	if err != nil {
		s.t.Fatal(err)
	}
	s.process = process
}

func (s *Server) options() servers.Options {
	return servers.Options{Logs: s.Dir, Address: s.Addr, Dir: s.Dir, Env: s.env, Args: s.args}
}

func (s *Server) hostPort() (host, port string) {
	host, port, _ = net.SplitHostPort(s.Addr) // made by FreeAddr
	return host, port
}

// StartReplica runs a replica of the server until the test ends, with arguments as for
// Start. It returns when the replica follows.
func (s *Server) StartReplica(args ...string) *Server {
	s.t.Helper()
	r := newServer(s.t)
	host, port := s.hostPort()
	r.start(append(args, "--replicaof", host+" "+port)...)
	r.awaitInfo("replication", "master_link_status:up")
	return r
}

// Alone restarts a replica as a primary.
func (s *Server) Alone() {
	s.t.Helper()
	s.Kill()
	s.args = s.args[:len(s.args)-2]
	s.run()
}

// awaitInfo blocks until a section of INFO holds a text.
func (s *Server) awaitInfo(section, text string) {
	s.t.Helper()
	s.Await("INFO "+section+" to say "+text, func() bool {
		return strings.Contains(s.Do("INFO", section).(string), text)
	})
}

// Await blocks until a condition holds.
func (s *Server) Await(what string, holds func() bool) {
	s.t.Helper()
	for deadline := time.Now().Add(startTimeout); !holds(); <-time.After(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			s.t.Fatalf("redis-server at %s: waited in vain for %s", s.Addr, what)
		}
	}
}

// Client returns a client of the server that is closed when the test ends.
func (s *Server) Client() *goredis.Client {
	c := goredis.NewClient(&goredis.Options{Addr: s.Addr, MaxRetries: -1, DialerRetries: 1, ReadTimeout: startTimeout})
	s.t.Cleanup(func() { _ = c.Close() })
	return c
}

// Restart ends the process at once and starts another at the same address.
func (s *Server) Restart() {
	s.t.Helper()
	s.Kill()
	s.run()
}

// Shutdown lets the process end in order, and starts another at the same address.
func (s *Server) Shutdown() {
	s.t.Helper()
	_, _ = s.do("SHUTDOWN") // the connection ends
	<-s.process.Done()
	s.run()
}

// Kill ends the process at once and waits until it is gone. A server that was
// killed before stays so.
func (s *Server) Kill() { s.process.Crash() }

// Pause stops the process without ending it: connections stay open and nothing
// answers until Resume.
func (s *Server) Pause() { s.process.SignalAll(syscall.SIGSTOP) }

// Resume lets a paused process go on.
func (s *Server) Resume() { s.process.SignalAll(syscall.SIGCONT) }

// Flush deletes every key.
func (s *Server) Flush() { s.Do("FLUSHALL") }

// FlushScripts empties the script cache.
func (s *Server) FlushScripts() { s.Do("SCRIPT", "FLUSH") }

// Do runs one command on a connection of its own and returns the reply.
func (s *Server) Do(args ...any) any {
	s.t.Helper()
	reply, err := s.do(args...)
	if err != nil {
		s.t.Fatalf("redis %v: %v", args, err)
	}
	return reply
}

func (s *Server) do(args ...any) (any, error) {
	c := goredis.NewClient(&goredis.Options{Addr: s.Addr, MaxRetries: -1, DialerRetries: 1, DialTimeout: time.Second})
	defer c.Close()
	return c.Do(context.Background(), args...).Result()
}

// FreeAddr returns host:port that nothing listens on.
func FreeAddr(t testing.TB) string {
	t.Helper()
	address, err := freeport.Address()
	if err != nil {
		t.Fatal(err)
	}
	return address
}

// Opened returns a function that takes what an open function returned, and closes it when the
// test ends.
func Opened[C io.Closer](t testing.TB) func(c C, err error) C {
	return func(c C, err error) C {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = c.Close() })
		return c
	}
}
