package postgres

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/weir-dev/weir/pkg/limiter"
	"github.com/weir-dev/weir/pkg/store/lane"
)

// An ask is a command that sql/batch.sql may decide, with others of other counters.
type ask struct {
	ctx    context.Context //nolint:containedctx // it is that of the call, for one that travels alone
	key    string
	params limiter.Params
	cmd    limiter.Command

	res     limiter.Result
	decided bool // when it is not, and there is no error, nothing was done
	err     error
}

// A sender is the lane of the counters of one retention.
type sender struct {
	*lane.Lane[*ask]

	store    *Store
	calls    *calls
	renewing atomic.Bool
}

func newSender(s *Store, c *calls) *sender {
	made := &sender{store: s, calls: c}
	made.Lane = lane.New(lane.Patience, made.carry)
	return made
}

// carry decides several commands by sql/batch.sql, and one by what is cheapest for it: the
// first take of a holder in a window finds no open one that sql/count.sql could go on with.
func (s *sender) carry(ctx context.Context, asks []*ask) {
	if len(asks) > 1 || asks[0].cmd.First {
		s.share(ctx, asks)
		return
	}
	a := asks[0]
	a.res, a.err = s.store.alone(a.ctx, a.key, a.params, a.cmd)
	a.decided = true
}

// share decides commands by one statement. Its transaction did nothing when the server
// answered with an error. One command may be the cause: then each goes alone.
func (s *sender) share(ctx context.Context, asks []*ask) {
	// In the order of the keys, and each once. A counter that is asked for again goes alone.
	asks = slices.Clone(asks)
	slices.SortStableFunc(asks, func(a, b *ask) int { return strings.Compare(a.key, b.key) })
	asks = slices.CompactFunc(asks, func(a, b *ask) bool { return a.key == b.key })
	err := s.decide(ctx, asks)
	if refused, ok := errors.AsType[*pgconn.PgError](err); err == nil || ok && refused.SeverityUnlocalized == "ERROR" {
		return
	}
	err = s.store.explain(err)
	for _, a := range asks {
		a.err = err
	}
}

// decide runs sql/batch.sql for commands that are in the order of their keys, all different.
func (s *sender) decide(ctx context.Context, asks []*ask) error {
	var got batch
	err := s.store.within(ctx, s.store.timeout, func(ctx context.Context) (err error) {
		got, err = query(ctx, s.store, readBatch, s.calls.batch, batchArgs(asks)...)
		return err
	})
	if err != nil {
		return err
	}
	if got.renew {
		s.renew()
	}
	if err := got.answer(asks); err != nil {
		for _, a := range asks {
			a.err = fmt.Errorf("%s: %w", s.store.name, err)
		}
	}
	return nil
}

// renew leases the server's clock ahead, beside the calls.
func (s *sender) renew() {
	if !s.renewing.CompareAndSwap(false, true) {
		return
	}
	s.Beside(func() {
		defer s.renewing.Store(false)
		// What fails is done by the next call that finds no lease.
		_ = s.store.within(context.Background(), s.store.timeout, func(ctx context.Context) error {
			_, err := query(ctx, s.store, one[int64], s.calls.renew)
			return err
		})
	})
}
