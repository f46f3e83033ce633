package postgres

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/weir-dev/weir/pkg/limiter"
	"github.com/weir-dev/weir/pkg/store"
	"github.com/weir-dev/weir/pkg/store/lane"
)

// sweepAtOnce is how many ended counters a refresh drops at most.
const sweepAtOnce = 1000

// A Store applies commands to counters in Postgres. It is safe for concurrent use.
type Store struct {
	pool    *pgxpool.Pool
	name    string
	program program
	lane    *lane.Lane[*ask]
	timeout time.Duration   // of a call
	control store.Control   // of addresses; nil allows all
	opened  time.Time       // carries the monotonic reading
	floor   store.Floor     // of the server's clock
	closed  context.Context //nolint:containedctx // it belongs to no call: it ends those under way
	close   context.CancelFunc
}

func newStore(config *pgxpool.Config, p program, timeout time.Duration) (*Store, error) {
	c := config.ConnConfig
	s := &Store{name: fmt.Sprintf("postgres at %s:%d/%s", c.Host, c.Port, c.Database), program: p, timeout: timeout, opened: time.Now()}
	s.closed, s.close = context.WithCancel(context.Background())
	s.lane = lane.New(lane.Patience, s.fly)
	c.DialFunc = s.dial
	var err error
	if s.pool, err = pgxpool.NewWithConfig(context.Background(), config); err != nil {
		return nil, fmt.Errorf("postgres client: %w", err)
	}
	return s, nil
}

// Close ends the calls under way and the connections.
func (s *Store) Close() error {
	s.lane.Close()
	s.close()
	s.pool.Close()
	s.lane.Wait()
	return nil
}

// Apply runs c for one counter in one round trip, or two at the edge of a window; takes that come while
// others are under way share theirs. Refusals are results. The error is
// a *store.UnavailableError when the server could not be reached, was not able to
// decide, or ctx was done; any other error names what is wrong with p or c, or is a
// defect.
//
// The command's floor is at least what earlier answers showed of the server's clock.
//
// A call whose error is unavailable may still have been carried out: a lost reply
// strands what it granted, until the window ends.
func (s *Store) Apply(ctx context.Context, key store.Key, p limiter.Params, c limiter.Command) (limiter.Result, error) {
	if err := p.Validate(); err != nil {
		return limiter.Result{}, fmt.Errorf("%s: %s: %w", s.name, key, err)
	}
	if err := c.Validate(); err != nil {
		return limiter.Result{}, fmt.Errorf("%s: %s: %w", s.name, key, err)
	}
	floored := c
	floored.Floor = max(c.Floor, s.floor.At(s.elapsed()))
	decide := s.decide
	if mayJoin(p, c) {
		decide = s.join
	}
	res, err := decide(ctx, key.String(), p, floored)
	if err == nil {
		s.floor.Answered(c, res, s.elapsed())
	}
	return res, err
}

// Reached notes what others know of the server's clock. It remembers for itself what it
// may have granted.
func (s *Store) Reached(by store.Reached) { s.floor.Observe(by.Now, s.elapsed()) }

// elapsed is the local instant of the floor.
func (s *Store) elapsed() int64 { return int64(time.Since(s.opened)) }

func (s *Store) decide(ctx context.Context, name string, p limiter.Params, c limiter.Command) (limiter.Result, error) {
	began := time.Now()
	if mayCount(p, c) {
		if res, done, err := s.count(ctx, name, p, c); done || err != nil {
			return res, err
		}
	}
	reply, err := run[[]int64](ctx, s, s.program.Program, s.timeout-time.Since(began), s.program.call(p, c), encode(name, p, c)...)
	if err != nil {
		return limiter.Result{}, err
	}
	res, err := decode(reply)
	if err != nil {
		return limiter.Result{}, fmt.Errorf("%s: %w", s.name, err)
	}
	return res, nil
}

// Refresh begins the server's memories where they may lack grants, and drops counters
// that ended. Called every few seconds while nobody asks for a decision, it lets a memory
// begin in the window that is open then instead of one that opens later. It is one round
// trip, and the error is that of Apply.
func (s *Store) Refresh(ctx context.Context) error {
	_, err := s.refresh(ctx)
	return err
}

// memories are the server's time and what names its memories.
type memories struct {
	now               limiter.Instant
	volatile, durable limiter.MemoryID
}

func (s *Store) refresh(ctx context.Context) (memories, error) {
	got, err := run[[]int64](ctx, s, s.program.Program, s.timeout, s.program.refresh, sweepAtOnce)
	switch {
	case err != nil:
		return memories{}, err
	case len(got) != 3:
		return memories{}, fmt.Errorf("%s: weir.refresh answered %d integers, want 3", s.name, len(got))
	}
	now := limiter.Instant(got[0])
	s.floor.Observe(now, s.elapsed())
	return memories{now: now, volatile: limiter.MemoryID(got[1]), durable: limiter.MemoryID(got[2])}, nil
}

// Run runs a statement of a program in the store's database, which returns one value, and
// the program is made first when the database lacks it. It is one round trip. The error is
// that of Apply.
func Run[T any](ctx context.Context, s *Store, p Program, sql string, args ...any) (T, error) {
	return run[T](ctx, s, p, s.timeout, sql, args...)
}

// Name is how errors call the database.
func (s *Store) Name() string { return s.name }

// run runs a statement that returns one value, within that long. A statement that fails
// because the database lacks something did nothing, and is the only one that is sent
// again.
func run[T any](ctx context.Context, s *Store, p Program, limit time.Duration, sql string, args ...any) (value T, err error) {
	ask := func(ctx context.Context) error {
		value, err = query(ctx, s, one[T], sql, args...)
		return err
	}
	err = s.within(ctx, limit, ask)
	if isMissing(err) {
		err = s.within(ctx, installTimeout, func(ctx context.Context) error { return s.install(ctx, p) })
		if err == nil {
			err = s.within(ctx, s.timeout, ask)
		}
	}
	if err != nil {
		return value, s.explain(s.elaborate(ctx, err))
	}
	return value, nil
}

// within runs f until the time is over or ctx is done.
func (s *Store) within(ctx context.Context, limit time.Duration, f func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	if err := ctx.Err(); err != nil {
		return err
	}
	return f(ctx)
}
