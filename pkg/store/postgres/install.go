package postgres

import (
	"context"
	"errors"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// isMissing reports that a call failed, before it did anything, because the
// database does not have what it needs.
func isMissing(err error) bool {
	switch codeOf(err) {
	case undefinedFunction, undefinedTable, undefinedObject, invalidSchemaName:
		return true
	}
	return false
}

// schema is made apart because the right to make one is checked even where it is there.
const schema = `DO $$ BEGIN IF to_regnamespace('weir') IS NULL THEN CREATE SCHEMA weir; END IF; END $$`

// install makes what the database lacks of a program. Concurrent installs wait for the first and
// then find it done.
func (s *Store) install(ctx context.Context, p Program) error {
	return pgx.BeginFunc(ctx, s.pool, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, "SET LOCAL statement_timeout = 0"); err != nil {
			return err
		}
		if _, err := tx.Exec(ctx, "SELECT pg_advisory_xact_lock(hashtext('weir'))"); err != nil {
			return err
		}
		if _, err := tx.Exec(ctx, schema); err != nil {
			return err
		}
		if err := p.installTables(ctx, tx); err != nil {
			return err
		}
		var functions int
		err := tx.QueryRow(ctx, `
			SELECT count(*) FROM pg_proc f JOIN pg_namespace n ON n.oid = f.pronamespace
			WHERE n.nspname = 'weir' AND right(f.proname, length($1)) = $1`, p.suffix).Scan(&functions)
		if err == nil && functions < p.size {
			_, err = tx.Exec(ctx, p.functions)
		}
		return err
	})
}

// installTables makes the relations from the first part on that is not there as a whole.
func (p Program) installTables(ctx context.Context, tx pgx.Tx) error {
	made := false
	for _, part := range p.tables {
		var there bool
		err := tx.QueryRow(ctx, "SELECT bool_and(to_regclass(r) IS NOT NULL) FROM unnest($1::text[]) r", part.Names).Scan(&there)
		if err != nil {
			return err
		}
		if made = made || !there; !made {
			continue
		}
		if _, err := tx.Exec(ctx, part.SQL); err != nil {
			return err
		}
	}
	return nil
}

// codeOf returns the SQLSTATE of an error that the server sent, else "".
func codeOf(err error) string {
	if pgErr, ok := errors.AsType[*pgconn.PgError](err); ok {
		return pgErr.Code
	}
	return ""
}
