package postgres

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/weir-dev/weir/pkg/limiter"
)

// mayCount reports whether sql/count.sql can decide a command.
func mayCount(p limiter.Params, c limiter.Command) bool {
	return c.Op == limiter.Take && !c.First &&
		p.Algorithm == limiter.FixedWindow && len(p.Rates) == 1 && p.Fairness.Default == 0
}

// count runs sql/count.sql. It reports false, and did nothing, when the statement
// cannot decide.
func (s *Store) count(ctx context.Context, key string, p limiter.Params, c limiter.Command) (limiter.Result, bool, error) {
	var got count
	err := s.within(ctx, s.timeout, func(ctx context.Context) (err error) {
		got, err = query(ctx, s, readCount, s.program.of(p.Retention).count, countArgs(key, p, c)...)
		return err
	})
	switch {
	case errors.Is(err, pgx.ErrNoRows) || isMissing(err):
		return limiter.Result{}, false, nil
	case err != nil:
		return limiter.Result{}, false, s.explain(s.elaborate(ctx, err))
	}
	res, err := got.result(p, c)
	if err != nil {
		return limiter.Result{}, false, fmt.Errorf("%s: %w", s.name, err)
	}
	return res, true, nil
}

// A count is what sql/count.sql returns: how much is used of the window, and when that
// ends and the statement ran, by the server's clock.
type count struct {
	used      int64
	ends, now time.Time
}

func readCount(row pgx.Row) (n count, err error) {
	err = row.Scan(&n.used, &n.ends, &n.now)
	return n, err
}

// countArgs returns the arguments of sql/count.sql.
func countArgs(key string, p limiter.Params, c limiter.Command) []any {
	return []any{key, terms(p), c.Want, p.Rates[0].Limit - c.Want, time.UnixMicro(int64(c.Floor))}
}

// terms is weir.terms.
func terms(p limiter.Params) string {
	r := p.Rates[0]
	text := make([]byte, 0, 64)
	text = strconv.AppendInt(text, p.Generation, 10)
	for _, n := range [...]int64{int64(p.Since), r.Limit, int64(r.Window), r.Burst, int64(r.Offset), flag(r.Monthly)} {
		text = strconv.AppendInt(append(text, ' '), n, 10)
	}
	if p.Retention.Resume {
		text = append(text, " resume"...)
	}
	for _, id := range p.Retention.Born {
		text = strconv.AppendInt(append(text, ' '), int64(id), 10)
	}
	return string(text)
}

// result returns what Step answers to the take that was counted. A clock that passed the
// end after the grant was judged, or was set, is held to the window.
func (n count) result(p limiter.Params, c limiter.Command) (limiter.Result, error) {
	last := limiter.Instant(n.ends.UnixMicro() - 1)
	w := p.Rates[0].WindowAt(last)
	state := limiter.State{Generation: p.Generation, Algorithm: limiter.FixedWindow, Pulse: w.Index, N: 1}
	state.Meters[0] = limiter.Meter{Rate: w.Rate, Index: w.Index, Used: n.used - c.Want}
	p.Since = 0 // weir.ease found the window to begin later
	c.Floor = 0 // the clock that judged had reached it
	_, res := p.Step(state, min(max(limiter.Instant(n.now.UnixMicro()), w.Start()), last), c)
	if res.Granted != c.Want {
		return res, fmt.Errorf("sql/count.sql granted %d of what Step calls %v", c.Want, res.Reason)
	}
	return res, nil
}
