package servers

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"

	"github.com/weir-dev/weir/internal/freeport"
)

// What every Postgres has.
const (
	PostgresUser     = "weir" // the superuser, who needs no password
	PostgresDatabase = "postgres"
)

// Postgres starts a server on new data; it logs to postgres.log in the directory.
func Postgres(ctx context.Context, logs string) (s *Server, err error) {
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
	data := filepath.Join(dir, "data")
	create := exec.CommandContext(ctx, initdb, "-D", data, "-U", PostgresUser, "-A", "trust", "-E", "UTF8", "--locale=C", "--no-sync")
	create.Dir, create.SysProcAttr = dir, as.attributes()
	if out, err := create.CombinedOutput(); err != nil {
		return nil, errors.Join(fmt.Errorf("initdb: %w", err), errors.New(string(out)))
	}
	return s.start(ctx, spec{
		path: program, log: filepath.Join(logs, "postgres.log"), as: as,
		ready: func(ctx context.Context) error {
			return exec.CommandContext(ctx, ready, "-q", "-h", "127.0.0.1", "-p", s.Port()).Run()
		},
		args: []string{
			"-D", data, "-p", s.Port(), "-h", "127.0.0.1", "-k", "", "-c", "fsync=off", "-c", "shared_buffers=16MB",
		},
	})
}
