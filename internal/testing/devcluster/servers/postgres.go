package servers

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"

	"github.com/weir-dev/weir/internal/testing/freeport"
)

// The superuser and the database that every Postgres has.
const (
	PostgresUser     = "weir" // the superuser, which needs no password
	PostgresDatabase = "postgres"
)

// Postgres starts a server on new data; it logs to postgres.log in the directory.
func Postgres(ctx context.Context, logs string) (s *Server, err error) {
	return PostgresWith(ctx, logs, nil, "-c", "fsync=off")
}

// PostgresWith is Postgres with variables added to its environment, as KEY=value, and
// arguments for the server, which is durable without any.
func PostgresWith(ctx context.Context, logs string, env []string, args ...string) (s *Server, err error) {
	installed, _ := filepath.Glob("/usr/lib/postgresql/*/bin") // the pattern is sound
	slices.Reverse(installed)                                  // the newest first
	initdb, err := find("initdb", installed...)
	if err != nil {
		return nil, err
	}
	program, err := find("postgres", installed...)
	if err != nil {
		return nil, err
	}
	ready, err := find("pg_isready", installed...)
	if err != nil {
		return nil, err
	}
	as, err := unprivileged()
	if err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp("", "weir-postgres-") // where another user can reach it
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
	if err := as.own(dir); err != nil {
		return nil, err
	}
	s.data = filepath.Join(dir, "data")
	create := exec.CommandContext(ctx, initdb, "-D", s.data, "-U", PostgresUser, "-A", "trust", "-E", "UTF8", "--locale=C", "--no-sync")
	create.Dir, create.SysProcAttr = dir, as.attributes()
	if out, err := create.CombinedOutput(); err != nil {
		return nil, errors.Join(fmt.Errorf("initdb: %w", err), errors.New(string(out)))
	}
	return s.start(ctx, spec{
		path: program, log: filepath.Join(logs, "postgres.log"), as: as, env: env,
		ready: func(ctx context.Context) error {
			return exec.CommandContext(ctx, ready, "-q", "-h", "127.0.0.1", "-p", s.Port()).Run()
		},
		args: append([]string{
			"-D", s.data, "-p", s.Port(), "-h", "127.0.0.1", "-k", "", "-c", "shared_buffers=16MB",
		}, args...),
	})
}

// Follow makes a Postgres the standby of another: what it holds is replaced by a copy of
// that one's, and whatever it ran is killed. It returns when the standby takes
// connections.
func (s *Server) Follow(ctx context.Context, primary *Server) error {
	s.Process.Kill()
	copier, err := find("pg_basebackup", filepath.Dir(s.spec.path))
	if err != nil {
		return err
	}
	if err := os.RemoveAll(s.data); err != nil {
		return err
	}
	backup := exec.CommandContext(ctx, copier, "-D", s.data, "-h", "127.0.0.1", "-p", primary.Port(), "-U", PostgresUser,
		"--write-recovery-conf", "--checkpoint=fast", "--no-sync")
	backup.Dir, backup.SysProcAttr = filepath.Dir(s.data), s.spec.as.attributes()
	if out, err := backup.CombinedOutput(); err != nil {
		return errors.Join(fmt.Errorf("pg_basebackup: %w", err), errors.New(string(out)))
	}
	_, err = s.start(ctx, s.spec)
	return err
}
