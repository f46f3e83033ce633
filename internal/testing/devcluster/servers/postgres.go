package servers

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// The superuser and the database that every Postgres has.
const (
	PostgresUser     = "weir" // the superuser, which needs no password
	PostgresDatabase = "postgres"
)

// places are where packages put the programs that are not in the PATH.
var places = []string{"/usr/lib/postgresql/*/bin", "/usr/pgsql-*/bin", "/opt/homebrew/opt/postgresql@*/bin"}

// Postgres starts a server on new data; it logs to postgres.log in the directory.
func Postgres(ctx context.Context, logs string) (*Server, error) {
	return PostgresWith(ctx, Options{Logs: logs, Args: []string{"-c", "fsync=off"}})
}

// PostgresWith is Postgres with options. The server is durable unless the arguments say otherwise. A directory
// holds its data, as InitDB makes it.
func PostgresWith(ctx context.Context, o Options) (*Server, error) {
	s, dir, err := o.prepare()
	if err != nil {
		return nil, err
	}
	if err := s.startPostgres(ctx, o, dir); err != nil {
		s.forget()
		return nil, err
	}
	return s, nil
}

func (s *Server) startPostgres(ctx context.Context, o Options, dir string) error {
	s.data = dir
	if o.Dir == "" {
		s.data = filepath.Join(dir, "data")
		if err := Own(dir); err != nil {
			return err
		}
		if err := InitDB(ctx, s.data); err != nil {
			return err
		}
	}
	program, err := findPostgres("postgres")
	if err != nil {
		return err
	}
	as, err := unprivileged()
	if err != nil {
		return err
	}
	return s.start(ctx, spec{
		path: program, log: filepath.Join(o.Logs, "postgres.log"), as: as, env: o.Env, sessions: true, ready: s.connects,
		args: slices.Concat([]string{"-D", s.data, "-p", s.Port(), "-h", "127.0.0.1", "-k", "", "-c", "shared_buffers=16MB"}, o.Args),
	})
}

// startingUp is the code by which a Postgres refuses connections that it will take later.
const startingUp = "57P03"

// connects returns nil when a Postgres takes connections, whatever users it lets in.
func (s *Server) connects(ctx context.Context) error {
	conn, err := pgx.Connect(ctx, "postgres://"+PostgresUser+"@"+s.Address+"/"+PostgresDatabase+"?sslmode=disable&connect_timeout=10")
	if err == nil {
		return conn.Close(ctx)
	}
	if refused, ok := errors.AsType[*pgconn.PgError](err); ok && refused.Code != startingUp {
		return nil
	}
	return err
}

// Follow makes a Postgres the standby of another: what it holds is replaced by a copy of
// that one's, and whatever it ran is killed. It returns when the standby takes
// connections.
func (s *Server) Follow(ctx context.Context, primary *Server) error {
	s.Crash()
	if err := os.RemoveAll(s.data); err != nil {
		return err
	}
	if err := primary.Backup(ctx, s.data, true); err != nil {
		return err
	}
	return s.start(ctx, s.spec)
}

// Backup takes a base backup of a Postgres into a directory that is empty or missing. A server that is started
// on it follows this one if it is for a standby.
func (s *Server) Backup(ctx context.Context, dir string, standby bool) error {
	args := []string{"-D", dir, "-h", "127.0.0.1", "-p", s.Port(), "-U", PostgresUser, "--checkpoint=fast", "--no-sync"}
	if standby {
		args = append(args, "--write-recovery-conf")
	}
	return runPostgres(ctx, "pg_basebackup", args...)
}

// InitDB makes the data of a fresh Postgres in a directory that is empty or missing. Arguments follow those
// that all of them have.
func InitDB(ctx context.Context, dir string, args ...string) error {
	return runPostgres(ctx, "initdb", slices.Concat([]string{
		"-D", dir, "-U", PostgresUser, "-A", "trust", "-E", "UTF8", "--locale=C", "--no-sync",
	}, args)...)
}

// PostgresVersion returns what the server's program says of its version.
func PostgresVersion() ([]byte, error) {
	program, err := findPostgres("postgres")
	if err != nil {
		return nil, err
	}
	return exec.Command(program, "--version").Output() //nolint:noctx // returns at once
}

// findPostgres returns the path of one of Postgres's programs, of the newest release unless the PATH names one.
func findPostgres(name string) (string, error) {
	var installed []string
	for _, place := range places {
		found, _ := filepath.Glob(place) // the pattern is well formed
		slices.Reverse(found)            // the newest first
		installed = append(installed, found...)
	}
	return find(name, installed...)
}

// runPostgres runs one of Postgres's programs to its end, as the user that Postgres runs as.
func runPostgres(ctx context.Context, name string, args ...string) error {
	program, err := findPostgres(name)
	if err != nil {
		return err
	}
	as, err := unprivileged()
	if err != nil {
		return err
	}
	cmd := exec.CommandContext(ctx, program, args...)
	cmd.Dir, cmd.SysProcAttr = os.TempDir(), as.attributes()
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("%s: %w: %s", name, err, out)
	}
	return nil
}
