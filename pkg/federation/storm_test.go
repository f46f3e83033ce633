package federation_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weir-dev/weir/internal/testing/federationtest"
	"github.com/weir-dev/weir/pkg/federation"
	"github.com/weir-dev/weir/pkg/federation/escrow"
	escrowmemory "github.com/weir-dev/weir/pkg/federation/escrow/memory"
	"github.com/weir-dev/weir/pkg/federation/ledger"
	"github.com/weir-dev/weir/pkg/limiter"
	"github.com/weir-dev/weir/pkg/monotonic"
	"github.com/weir-dev/weir/pkg/store"
	"github.com/weir-dev/weir/pkg/twotier/account"
)

// A desk is the escrow that the processes of a region share, in the hands of a test.
type desk struct {
	mu   sync.Mutex
	to   *escrowmemory.Escrow
	away bool
	slow time.Duration // until it answers
	lose func() bool   // answers
}

func newDesk() *desk {
	return &desk{to: escrowmemory.New(escrowmemory.Options{}), lose: func() bool { return false }}
}

func (d *desk) set(f func()) {
	d.mu.Lock()
	defer d.mu.Unlock()
	f()
}

// Apply implements federation.Escrow.
func (d *desk) Apply(ctx context.Context, id string, c escrow.Command) (escrow.Result, error) {
	d.mu.Lock()
	to, away, slow, lost := d.to, d.away, d.slow, d.lose()
	d.mu.Unlock()
	if away {
		return escrow.Result{}, errCut
	}
	if !federationtest.Wait(ctx, slow) {
		return escrow.Result{}, &store.UnavailableError{Store: "test", Cause: ctx.Err()}
	}
	r, err := to.Apply(ctx, id, c)
	if lost {
		return escrow.Result{}, errCut
	}
	return r, err
}

// A storm is a budget over three regions where everything goes wrong that may.
type storm struct {
	t      *testing.T
	rng    *rand.Rand
	hub    *federationtest.Hub
	params ledger.Params
	count  *count
	lines  []*federationtest.Line
	desks  []*desk
	shared bool // the processes of a region share an escrow
	action federation.Outage

	mu      sync.Mutex
	chance  *rand.Rand // guarded by mu: of what runs beside the test
	outages int64      // guarded by mu
}

func newStorm(t *testing.T, seed uint64) *storm {
	rng := rand.New(rand.NewPCG(seed, 7))
	s := &storm{t: t, rng: rng, chance: rand.New(rand.NewPCG(seed, 8))}
	s.hub = federationtest.NewHub(time.Duration(rng.Int64N(int64(time.Hour))))
	s.hub.Rate = 1 + float64(rng.IntN(201)-100)/1e6
	window := []limiter.Micros{200 * limiter.Millisecond, 500 * limiter.Millisecond, limiter.Second}[rng.IntN(3)]
	s.params = budget(20+rng.Int64N(200), window, 3)
	s.params.Strategy = ledger.Strategy(rng.IntN(3))
	s.action = federation.Outage(rng.IntN(3))
	if s.action == federation.Nominal {
		s.params = nominal(s.params)
		for i := range s.params.Members {
			s.params.Members[i].Kept = s.rng.Int64N(s.params.Members[i].Nominal + 1)
		}
	}
	s.shared = rng.IntN(2) == 0
	s.count = newCount(s.hub, s.params)
	for range s.params.Members {
		l := federationtest.NewLine(s.hub, 0)
		l.There, l.Back = s.delay, s.delay
		l.Lose = func() bool { return s.one(60) }
		l.Twice = func() bool { return s.one(60) }
		s.lines = append(s.lines, l)
		d := newDesk()
		d.lose = func() bool { return s.one(100) }
		s.desks = append(s.desks, d)
	}
	return s
}

func (s *storm) String() string {
	return fmt.Sprintf("limit %d, window %dms, strategy %d, action %d, shared %t", s.params.Limit, s.params.Window/limiter.Millisecond, s.params.Strategy, s.action, s.shared)
}

// one reports true once in that many times.
func (s *storm) one(of int) bool { return s.below(int64(of)) == 0 }

func (s *storm) below(n int64) int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.chance.Int64N(n)
}

func (s *storm) delay() time.Duration {
	if s.one(20) {
		return time.Duration(s.below(int64(400 * time.Millisecond)))
	}
	return time.Duration(s.below(int64(20 * time.Millisecond)))
}

// live runs one process of a region for a while, that then crashes.
func (s *storm) live(ctx context.Context, member int) {
	cfg := config(s.params, member)
	cfg.Outage, cfg.Timeout, cfg.Probe = s.action, 300*time.Millisecond, time.Second
	var e federation.Escrow
	if s.shared {
		e = s.desks[member]
	}
	r := federation.New(cfg, s.lines[member], e)
	var work sync.WaitGroup
	work.Go(func() { s.skew(ctx, cfg.Clock, s.below(101)) })
	for range 3 {
		work.Go(func() { s.spend(ctx, r, cfg.Clock) })
	}
	<-ctx.Done()
	crash, cancel := context.WithCancel(context.WithoutCancel(ctx))
	if s.one(2) {
		cancel() // without a word
	}
	r.Close(crash)
	cancel()
	work.Wait()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.outages += r.Stats().Outages
}

// skew makes a clock fast by ppm millionths.
func (s *storm) skew(ctx context.Context, c *monotonic.Clock, ppm int64) {
	const tick = 5 * time.Millisecond
	for federationtest.Wait(ctx, tick) && ctx.Err() == nil {
		c.Skip(tick * time.Duration(ppm) / 1e6)
	}
}

// spend takes units, gives some back and spends the others as late as it may.
func (s *storm) spend(ctx context.Context, r *federation.Region, clock *monotonic.Clock) {
	for federationtest.Wait(ctx, time.Duration(s.below(int64(6*time.Millisecond)))) && ctx.Err() == nil {
		c := limiter.Command{Op: limiter.Take, Min: 1 + s.below(3)}
		c.Want = c.Min + s.below(8)
		asked := clock.Now()
		res, err := r.Apply(ctx, key, limitOf(s.params), c)
		if err != nil {
			if _, away := errors.AsType[*store.UnavailableError](err); !away {
				s.t.Errorf("%v", err)
			}
			continue
		}
		if res.Granted == 0 {
			continue
		}
		deadline := account.DeadlineOf(asked, res.ExpiresIn)
		if s.one(3) && deadline > clock.Now() {
			federationtest.Wait(context.WithoutCancel(ctx), time.Duration(s.below(deadline-clock.Now())))
		}
		if s.one(10) {
			back := 1 + s.below(res.Granted)
			_, _ = r.Apply(ctx, key, limitOf(s.params), limiter.Command{Op: limiter.Return, Want: back, Windows: res.Windows})
			res.Granted -= back
		}
		if clock.Now() >= deadline || res.Granted == 0 {
			continue
		}
		if w, now := res.Windows.Open[0], s.hub.Now(); !w.Contains(now) || !w.Contains(res.Now) {
			s.t.Errorf("a grant of window %d was good at %d, reported as %d", w.Index, now, res.Now)
		}
		s.count.add(res.Granted)
	}
}

// fault lets something go wrong, or right again.
func (s *storm) fault() {
	member := int(s.below(3))
	l, d := s.lines[member], s.desks[member]
	switch s.below(12) {
	case 0, 1:
		l.SetCut(true)
	case 2, 3, 4:
		for _, l := range s.lines {
			l.SetCut(false)
		}
	case 5:
		s.hub.Stop()
	case 6, 7:
		s.hub.Restart(false)
	case 8:
		d.set(func() { d.away = true })
	case 9, 10:
		d.set(func() { d.away = false })
	case 11:
		if s.action != federation.Nominal { // one that is lost forgets what it may use by itself
			d.set(func() { d.to = escrowmemory.New(escrowmemory.Options{}) })
		}
	}
}

// run lets processes live and die for a time.
func (s *storm) run(d time.Duration) {
	ctx, cancel := context.WithTimeout(s.t.Context(), d)
	defer cancel()
	var work sync.WaitGroup
	for member := range s.params.Members {
		processes := 1
		if s.action != federation.Nominal { // only one may begin windows by itself
			processes = 1 + s.rng.IntN(2)
		}
		for range processes {
			work.Go(func() {
				for ctx.Err() == nil {
					life, end := context.WithTimeout(ctx, 500*time.Millisecond+time.Duration(s.below(int64(4*time.Second))))
					s.live(life, member)
					end()
				}
			})
		}
	}
	for federationtest.Wait(ctx, 250*time.Millisecond) && ctx.Err() == nil {
		s.fault()
	}
	work.Wait()
}

// TestNoWindowAdmitsMoreThanTheLimit counts by itself what is spent in each window of the
// coordinator's clock.
func TestNoWindowAdmitsMoreThanTheLimit(t *testing.T) {
	var total, most, outages, runs int64
	for seed := range uint64(storms) {
		t.Run(fmt.Sprintf("seed %d", seed), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newStorm(t, seed)
				s.run(6 * time.Second)
				if admitted := s.count.check(t, s.params.Limit); t.Failed() {
					t.Logf("%v: admitted %d", s, admitted)
				} else {
					total += admitted
				}
				most += s.params.Limit * int64(6*limiter.Second/s.params.Window)
				outages += s.outages
				runs++
			})
		})
	}
	t.Logf("admitted %d of %d, with %d outages", total, most, outages)
	if total < most/5 || outages < runs {
		t.Errorf("admitted %d of %d with %d outages: the storm tests little", total, most, outages)
	}
}
