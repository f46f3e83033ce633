package pooltest

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/weir-dev/weir/pkg/concurrency/pool"
	"github.com/weir-dev/weir/pkg/limiter"
	"github.com/weir-dev/weir/pkg/store"
)

// Settings of a storm.
const (
	stormHolders = 12
	stormLimit   = 30
	// stormTTL is long beside the time that a busy machine takes for a beat: a fleet whose
	// shares expire first does not use the limit.
	stormTTL     = 2 * limiter.Second
	stormMargin  = 25 * time.Millisecond // of the holders' clocks
	stormBeat    = 40 * time.Millisecond
	stormTimeout = time.Second // of a beat, less than stormTTL
	// stormPatience is how long a loss may keep the fleet from using the limit.
	stormPatience = time.Minute
)

// Storm lets a fleet use a pool while losses happen, one after another. It adds up by
// itself what was in flight at every instant, and fails when that exceeded the limit,
// or when the fleet does not come to use it again after a loss.
func Storm(t *testing.T, c Coordinator, losses []func()) {
	t.Helper()
	ctx, stop := context.WithCancel(t.Context())
	var busy atomic.Int64
	fleet := make([]*holder, stormHolders)
	var all sync.WaitGroup
	for i := range fleet {
		fleet[i] = &holder{c: c, key: key(t), name: fmt.Sprint("h", i), dice: rand.New(rand.NewPCG(uint64(i), 8)), busy: &busy}
		all.Go(func() { fleet[i].run(ctx, t) })
	}
	for _, loss := range losses {
		awaitBusy(t, &busy)
		loss()
		<-time.After(2 * time.Duration(stormTTL) * time.Microsecond) // until it is felt
	}
	awaitBusy(t, &busy)
	stop()
	all.Wait()

	var uses []use
	for _, s := range fleet {
		uses = append(uses, s.uses...)
	}
	if most := busiest(uses); most > stormLimit || most < stormLimit/2 {
		t.Errorf("up to %d were in flight at once, want nearly %d and no more", most, stormLimit)
	}
}

func awaitBusy(t *testing.T, busy *atomic.Int64) {
	t.Helper()
	for deadline := time.Now().Add(stormPatience); busy.Load() < stormLimit/2; <-time.After(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Errorf("only %d are in flight", busy.Load())
			return
		}
	}
}

// A holder keeps to what package pool needs of it, however late the
// machine lets it run: by its own clock nothing is in flight after its share expired.
type holder struct {
	c    Coordinator
	key  pool.Key
	name string
	dice *rand.Rand

	grant    pool.Grant
	held     int64
	deadline time.Time
	seq      int64
	inFlight int64
	peak     int64 // since the last beat that was answered
	since    time.Time
	uses     []use

	busy *atomic.Int64 // what the fleet has in flight
}

// use is that many requests in flight from one instant to another.
type use struct {
	from, to time.Time
	requests int64
}

func (s *holder) run(ctx context.Context, t *testing.T) {
	p := pool.Params{
		Min: stormLimit, Max: stormLimit, Initial: stormLimit,
		TTL: stormTTL, Quarantine: stormTTL, Generation: 1, Allocation: pool.DemandProportional,
	}
	for ctx.Err() == nil {
		if err := s.beat(ctx, p); err != nil && ctx.Err() == nil {
			if unavailable := (*store.UnavailableError)(nil); !errors.As(err, &unavailable) {
				t.Errorf("Apply: %v", err)
				return
			}
		}
		<-time.After(stormBeat/2 + rand.N(stormBeat))
		s.work(s.dice.Int64N(s.inFlight + 1)) // some end
	}
	s.work(0)
}

func (s *holder) beat(ctx context.Context, p pool.Params) error {
	ctx, cancel := context.WithTimeout(ctx, stormTimeout)
	defer cancel()
	s.work(s.inFlight) // ends what has to
	s.seq++
	sent := time.Now()
	g, err := s.c.Apply(ctx, s.key, p, pool.Command{
		Op: pool.Beat, Holder: s.name, Seq: s.seq, Term: s.grant.Term, Applied: s.grant.Generation, Held: s.held,
		InFlight: s.inFlight, Peak: s.peak,
	})
	s.work(s.inFlight)
	if err != nil {
		return err
	}
	s.peak = s.inFlight
	if g.Term < s.grant.Term || g.Term == s.grant.Term && g.Seq <= s.grant.Seq {
		return nil
	}
	s.grant = g
	if g.Quarantined > 0 {
		g.Share = min(g.Share, s.held)
	}
	s.held, s.deadline = g.Share, sent.Add(time.Duration(g.TTL)*time.Microsecond-stormMargin)
	s.work(max(s.inFlight, s.held))
	return nil
}

// work changes how many are in flight, to none when the share has expired.
func (s *holder) work(requests int64) {
	now := time.Now()
	if until := earlier(now, s.deadline); s.inFlight > 0 && until.After(s.since) {
		s.uses = append(s.uses, use{s.since, until, s.inFlight})
	}
	if !now.Before(s.deadline) {
		requests, s.held = 0, 0
	}
	s.busy.Add(requests - s.inFlight)
	s.inFlight, s.peak, s.since = requests, max(s.peak, requests), now
}

func earlier(a, b time.Time) time.Time {
	if a.Before(b) {
		return a
	}
	return b
}

// busiest returns the most that were in flight at one instant.
func busiest(uses []use) int64 {
	type change struct {
		at time.Time
		by int64
	}
	var changes []change
	for _, u := range uses {
		changes = append(changes, change{u.from, u.requests}, change{u.to, -u.requests})
	}
	slices.SortFunc(changes, func(a, b change) int { return cmp.Or(a.at.Compare(b.at), cmp.Compare(a.by, b.by)) })
	var sum, most int64
	for _, c := range changes {
		sum += c.by
		most = max(most, sum)
	}
	return most
}
