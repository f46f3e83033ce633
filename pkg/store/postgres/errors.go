package postgres

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/weir-dev/weir/pkg/store"
)

// SQLSTATE codes that are acted upon.
const (
	undefinedFunction     = "42883"
	undefinedTable        = "42P01"
	undefinedObject       = "42704"
	invalidSchemaName     = "3F000"
	insufficientPrivilege = "42501"
	featureNotSupported   = "0A000"
	readOnlyTransaction   = "25006"
	queryCanceled         = "57014" // its time-out was over, too
)

// unable are the SQLSTATE codes, or their classes, with which a server says that it
// cannot serve now, and what that means to a user. Any other is a defect of ours.
var unable = []struct{ code, meaning string }{
	{readOnlyTransaction, "it is a standby or read-only, point the policy at the primary"},
	{"28", "it refuses the user name, password or certificate: correct those in the Secret, and see pg_hba.conf"},
	{"3D000", "it has no such database: create it, or name another"},
	{"40001", "another transaction was in the way; its default isolation is not read committed"},
	{"40P01", "another transaction was in the way"},
	{"53100", "its disk is full"},
	{"53200", "its memory is full"},
	{"53300", "it has no connection left (max_connections)"},
	{"53", "it has too little of some resource"},
	{"55P03", "another client holds a lock on Weir's tables"},
	{"57014", "it did not answer in time, or the call was cancelled"},
	{"57P03", "it is starting or stopping"},
	{"57P", "it is stopping or restarting"},
	{"58", "it cannot read or write its files"},
	{"08", "the connection broke"},
}

const (
	noPostgres  = "it does not answer as Postgres does: name the address of a Postgres"
	unknownCode = "it answers with an error that Weir does not expect: see that it is Postgres, and what its log says"
)

// explain turns an error of the client into one of this package: unavailable when
// no answer came, or one that the server cannot serve. The server's own error is in the
// cause of a *store.Failure.
func (s *Store) explain(err error) error {
	code := codeOf(err)
	if code == "" {
		return &store.UnavailableError{Store: s.name, Cause: unanswered(err)}
	}
	if code == insufficientPrivilege {
		why := "its user lacks a right that Weir needs: see that it may use the schema weir and its tables"
		if lacks, ok := errors.AsType[*store.Failure](err); ok {
			why, err = lacks.Why, lacks.Cause
		}
		return &store.UnavailableError{Store: s.name, Cause: &store.Failure{Why: why, Cause: err}}
	}
	for _, u := range unable {
		if strings.HasPrefix(code, u.code) {
			return &store.UnavailableError{Store: s.name, Cause: &store.Failure{Why: u.meaning, Cause: err}}
		}
	}
	return fmt.Errorf("%s: %w", s.name, &store.Failure{Why: unknownCode, Cause: err})
}

// unanswered returns why no answer came.
func unanswered(err error) *store.Failure {
	switch f := store.Unreached(err); {
	case f != nil:
		return f
	case strings.Contains(err.Error(), "server refused TLS connection"): // the client has no type for it
		return &store.Failure{Why: "it does not speak TLS: set ssl = on there, or leave tls out", Cause: err}
	}
	return &store.Failure{Why: noPostgres, Cause: err}
}

// elaborate asks the server what an error that says too little means.
func (s *Store) elaborate(ctx context.Context, err error) error {
	switch codeOf(err) {
	case insufficientPrivilege:
		return s.within(ctx, s.timeout, func(ctx context.Context) error { return s.lacksRights(ctx, err) })
	case featureNotSupported:
		return s.within(ctx, s.timeout, func(ctx context.Context) error { return s.follows(ctx, err) })
	}
	return err
}

// lacksRights adds to an error about rights what gives them.
func (s *Store) lacksRights(ctx context.Context, cause error) error {
	var first bool
	if err := s.pool.QueryRow(ctx, "SELECT to_regnamespace('weir') IS NULL").Scan(&first); err != nil {
		return err
	}
	c := s.pool.Config().ConnConfig
	user, database := pgx.Identifier{c.User}.Sanitize(), pgx.Identifier{cmp.Or(c.Database, c.User)}.Sanitize()
	if first {
		return &store.Failure{Cause: cause, Why: fmt.Sprintf(
			"its user may not make the schema weir; let an administrator run: GRANT CREATE ON DATABASE %s TO %s", database, user)}
	}
	return &store.Failure{Cause: cause, Why: fmt.Sprintf("its user may not use the schema weir, which another user made; let an administrator run: "+
		"GRANT USAGE, CREATE ON SCHEMA weir TO %[1]s; GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA weir TO %[1]s", user)}
}

// follows turns an error about what a server does not do, when that is because it
// follows another, into that of a transaction that may not write.
func (s *Store) follows(ctx context.Context, cause error) error {
	var standby bool
	if err := s.pool.QueryRow(ctx, "SELECT pg_is_in_recovery()").Scan(&standby); err != nil {
		return err
	}
	if standby {
		return &pgconn.PgError{Severity: "ERROR", Code: readOnlyTransaction, Message: cause.Error()}
	}
	return cause
}
