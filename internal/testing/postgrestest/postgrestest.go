// Package postgrestest runs private Postgres servers for tests.
package postgrestest

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/weir-dev/weir/internal/testing/devcluster/servers"
	"github.com/weir-dev/weir/internal/testing/freeport"
)

// The superuser and the database that every server has.
const (
	User     = servers.PostgresUser
	Database = servers.PostgresDatabase
)

// startTimeout is how long a server may take to answer after its start.
const startTimeout = 30 * time.Second

// A Server is one Postgres server on a TCP port of the loopback address. Its methods
// fail the test when they cannot do what they say, and belong to the test's goroutine.
type Server struct {
	Addr string // host:port, the same after Restart

	t           testing.TB
	settings    []string
	environment []string // beside that of the test
	dir         string   // of its data
	logs        string   // directory of its output
	process     *servers.Server
}

// Set changes the settings that the server has from its next start on, as those of Start,
// and the environment that it is started in, "NAME=value" each.
func (s *Server) Set(settings, environment []string) {
	s.settings, s.environment = settings, environment
}

// Start runs a new server until the test ends. The settings are "name=value" as in
// postgresql.conf.
func Start(t testing.TB, settings ...string) *Server {
	t.Helper()
	dir := newDir(t)
	copyDir(t, template(t), dir)
	return StartIn(t, dir, settings...)
}

// StartIn runs a server on existing data, which it owns from now on, until the test
// ends.
func StartIn(t testing.TB, dir string, settings ...string) *Server {
	t.Helper()
	s := &Server{Addr: freeAddr(t), t: t, settings: settings, dir: dir, logs: t.TempDir()}
	s.run()
	t.Cleanup(s.Kill)
	return s
}

// Do runs SQL on a connection of its own, as the superuser, and returns the rows of
// its last statement.
func (s *Server) Do(sql string, args ...any) [][]any {
	s.t.Helper()
	rows, err := s.do(sql, args...)
	if err != nil {
		s.t.Fatalf("postgres: %s: %v", sql, err)
	}
	return rows
}

// Hold runs SQL in a transaction that stays open until release is called or the test
// ends.
func (s *Server) Hold(sql string) (release func()) {
	s.t.Helper()
	ctx := context.Background()
	conn, err := s.connect(ctx)
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() { _ = conn.Close(ctx) })
	for _, statement := range []string{"BEGIN", sql} {
		if _, err := conn.Exec(ctx, statement); err != nil {
			s.t.Fatalf("postgres: %s: %v", statement, err)
		}
	}
	return func() {
		_, _ = conn.Exec(ctx, "ROLLBACK") // returns when it is undone; a server notices later that somebody left
		_ = conn.Close(ctx)
	}
}

// WriteFile writes a file of the server into the directory of its data.
func (s *Server) WriteFile(name string, data []byte) {
	s.t.Helper()
	path := filepath.Join(s.dir, name)
	if err := os.WriteFile(path, data, 0o600); err != nil {
		s.t.Fatal(err)
	}
	s.must(servers.Own(path))
}

// Restart shuts the server down in order and starts it again at the same address.
func (s *Server) Restart() {
	s.t.Helper()
	s.Stop()
	s.run()
}

// Crash ends all processes of the server at once and starts it again.
func (s *Server) Crash() {
	s.t.Helper()
	s.Kill()
	s.run()
}

// Abort ends the server at once, as pg_ctl stop -m immediate does, and starts it again.
func (s *Server) Abort() {
	s.t.Helper()
	s.end(syscall.SIGQUIT)
	s.run()
}

// Stop shuts the server down in order.
func (s *Server) Stop() {
	s.t.Helper()
	s.end(syscall.SIGINT)
}

func (s *Server) end(sig syscall.Signal) {
	s.t.Helper()
	s.process.Signal(sig)
	select {
	case <-s.process.Done():
	case <-time.After(startTimeout):
		s.t.Fatalf("postgres does not stop; see %s", s.logs)
	}
}

// Kill ends all processes of the server at once and waits until they are gone. A
// server that was ended before stays so.
func (s *Server) Kill() { s.process.Crash() }

// KillOne ends one of the processes that serve the store and returns when the server, which
// then ends its other processes too, has started again. The server notices a moment later and
// answers until then from memory that it is about to lose, so an answer alone does not
// show that it started again.
func (s *Server) KillOne() {
	s.t.Helper()
	before := s.process.Children()
	pid := s.Do("SELECT pid FROM pg_stat_activity WHERE application_name = 'weir' LIMIT 1")[0][0].(int32)
	s.must(syscall.Kill(int(pid), syscall.SIGKILL))
	servers.AwaitEnd(before)
	s.Await()
}

// Pause stops all processes of the server without ending them: connections stay open
// and nothing answers until Resume.
func (s *Server) Pause() { s.process.SignalAll(syscall.SIGSTOP) }

// Resume lets a paused server go on.
func (s *Server) Resume() { s.process.SignalAll(syscall.SIGCONT) }

// Copy copies the data of a stopped server.
func (s *Server) Copy() string {
	s.t.Helper()
	dir := newDir(s.t)
	copyDir(s.t, s.dir, dir)
	return dir
}

// Replace puts other data, which Copy or Backup returned, in the place of a stopped
// server's and starts it.
func (s *Server) Replace(dir string) {
	s.t.Helper()
	s.dir = dir
	s.run()
}

// Recover is Replace by a backup that the server recovers to where its settings say, and
// then goes on from as its own primary.
func (s *Server) Recover(dir string) {
	s.t.Helper()
	s.dir = dir
	s.WriteFile("recovery.signal", nil)
	s.run()
	for s.Do("SELECT pg_is_in_recovery()")[0][0].(bool) {
		<-time.After(time.Millisecond)
	}
}

// Backup takes a base backup, and standby makes a server on it follow this one.
func (s *Server) Backup(standby bool) string {
	s.t.Helper()
	dir := newDir(s.t)
	s.must(s.process.Backup(context.Background(), dir, standby))
	return dir
}

func (s *Server) do(sql string, args ...any) ([][]any, error) {
	ctx := context.Background()
	conn, err := s.connect(ctx)
	if err != nil {
		return nil, err
	}
	defer conn.Close(ctx)
	rows, err := conn.Query(ctx, sql, args...)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, func(row pgx.CollectableRow) ([]any, error) { return row.Values() })
}

func (s *Server) connect(ctx context.Context) (*pgx.Conn, error) {
	config, err := pgx.ParseConfig(fmt.Sprintf("postgres://%s@%s/%s?sslmode=disable", User, s.Addr, Database))
	if err != nil {
		return nil, err
	}
	config.ConnectTimeout = 10 * time.Second // of a machine that is busy
	config.DefaultQueryExecMode = pgx.QueryExecModeExec
	return pgx.ConnectConfig(ctx, config)
}

func (s *Server) must(err error) {
	s.t.Helper()
	if err != nil {
		s.t.Fatal(err)
	}
}

func (s *Server) run() {
	s.t.Helper()
	var args []string
	for _, setting := range slices.Concat(defaults, s.settings) {
		args = append(args, "-c", setting)
	}
	ctx, cancel := context.WithTimeout(context.Background(), startTimeout)
	defer cancel()
	process, err := servers.PostgresWith(ctx, servers.Options{Logs: s.logs, Address: s.Addr, Dir: s.dir, Env: s.environment, Args: args})
	s.must(err)
	s.process = process
}

// defaults are the settings of a small server. Writes of a killed process stay in the
// kernel, so nothing needs a disk.
var defaults = []string{
	"fsync=off", "max_connections=50",
	"max_wal_size=64MB", "min_wal_size=2MB", "wal_keep_size=64MB", "logging_collector=off",
}

// Await blocks until the server answers.
func (s *Server) Await() {
	s.t.Helper()
	for deadline := time.Now().Add(startTimeout); ; <-time.After(5 * time.Millisecond) {
		_, err := s.do("SELECT 1")
		if err == nil {
			return
		}
		if time.Now().After(deadline) {
			s.t.Fatalf("postgres at %s does not answer: %v", s.Addr, err)
		}
	}
}

func freeAddr(t testing.TB) string {
	t.Helper()
	address, err := freeport.Address()
	if err != nil {
		t.Fatal(err)
	}
	return address
}
