package postgres

import (
	"context"

	"github.com/jackc/pgx/v5"
)

// query runs a statement that returns one row, and waits for that until ctx is done.
//
// The statement goes on without a caller that waits no longer, until the server has
// answered or the time-out of the store is over. To break the connection off would spare the server
// nothing of the statement, and it starts a process for the next one: a server that is
// slow because it has much to do would get slower by every caller that gives up.
func query[T any](ctx context.Context, s *Store, read func(pgx.Row) (T, error), sql string, args ...any) (T, error) {
	var none T
	conn, err := s.pool.Acquire(ctx)
	if err != nil {
		return none, err
	}
	type answer struct {
		row T
		err error
	}
	answered := make(chan answer, 1)
	go func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), s.timeout)
		defer cancel()
		row, err := read(conn.QueryRow(ctx, sql, args...))
		conn.Release() // first, or the next call makes another
		answered <- answer{row, err}
	}()
	select {
	case a := <-answered:
		return a.row, a.err
	case <-ctx.Done():
		return none, ctx.Err()
	}
}

// one reads a row of one value.
func one[T any](row pgx.Row) (value T, err error) {
	err = row.Scan(&value)
	return value, err
}
