package postgres

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"sync"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/weir-dev/weir/pkg/limiter"
)

// An ask is a take that may be decided together with others.
type ask struct {
	key string
	p   limiter.Params
	c   limiter.Command

	res limiter.Result
	err error
}

// mayJoin reports whether a command may be decided by sql/together.sql.
func mayJoin(p limiter.Params, c limiter.Command) bool {
	return c.Op == limiter.Take && p.Fairness.Default == 0 && !p.Retention.Durable
}

// join has a take decided, with those that come at the same time or while others are under way.
func (s *Store) join(ctx context.Context, key string, p limiter.Params, c limiter.Command) (limiter.Result, error) {
	a := &ask{key: key, p: p, c: c}
	if err := s.lane.Send(ctx, a); err != nil { // the ask may still be under way
		return limiter.Result{}, s.explain(err)
	}
	return a.res, a.err
}

// fly decides takes: those of one limit in one statement.
func (s *Store) fly(ctx context.Context, asks []*ask) {
	var wait sync.WaitGroup
	for len(asks) > 0 {
		of := asks[0].p
		same := slices.DeleteFunc(slices.Clone(asks), func(a *ask) bool { return !reflect.DeepEqual(a.p, of) })
		asks = slices.DeleteFunc(asks, func(a *ask) bool { return slices.Contains(same, a) })
		if len(asks) == 0 {
			s.decideTogether(ctx, same)
			break
		}
		wait.Go(func() { s.decideTogether(ctx, same) })
	}
	wait.Wait()
}

// decideTogether decides takes of one limit. Where the server answers with an error it did nothing,
// and each take is decided for itself.
func (s *Store) decideTogether(ctx context.Context, asks []*ask) {
	if len(asks) > 1 {
		err := s.together(ctx, asks)
		var answered *pgconn.PgError
		if err == nil || !errors.As(err, &answered) || answered.Code == queryCanceled {
			for _, a := range asks {
				if err != nil {
					a.err = s.explain(err)
				}
			}
			return
		}
	}
	var wait sync.WaitGroup
	for _, a := range asks {
		wait.Go(func() { a.res, a.err = s.decide(ctx, a.key, a.p, a.c) })
	}
	wait.Wait()
}

// together runs sql/together.sql.
func (s *Store) together(ctx context.Context, asks []*ask) error {
	slices.SortStableFunc(asks, func(a, b *ask) int { return cmp.Compare(a.key, b.key) })
	var reply []int64
	err := s.within(ctx, s.timeout, func(ctx context.Context) (err error) {
		reply, err = query(ctx, s, one[[]int64], s.program.together, togetherArgs(asks)...)
		return err
	})
	if err != nil {
		return err
	}
	for _, a := range asks {
		n := replySize(reply)
		if n > len(reply) {
			return fmt.Errorf("%d integers are left of the answer for %s", len(reply), a.key)
		}
		if a.res, err = decode(reply[:n]); err != nil {
			return err
		}
		reply = reply[n:]
	}
	if len(reply) > 0 {
		return fmt.Errorf("%d integers are left of the answer", len(reply))
	}
	return nil
}

// togetherArgs returns the arguments of weir.together, in its order.
func togetherArgs(asks []*ask) []any {
	n := len(asks)
	keys, firsts := make([]string, n), make([]bool, n)
	mins, wants, floors := make([]int64, n), make([]int64, n), make([]int64, n)
	for i, a := range asks {
		keys[i], firsts[i] = a.key, a.c.First
		mins[i], wants[i], floors[i] = a.c.Min, a.c.Want, int64(a.c.Floor)
	}
	of := encode("", asks[0].p, asks[0].c)
	const generation, algorithm, rates, either, buckets, maxDelay, lifetime, since, born, resume = 8, 9, 10, 11, 12, 13, 14, 18, 20, 21
	return []any{
		keys, mins, wants, firsts, floors,
		of[generation], of[algorithm], of[rates], of[either], of[buckets], of[maxDelay], of[lifetime], of[since], of[born], of[resume],
	}
}
