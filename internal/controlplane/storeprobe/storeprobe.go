package storeprobe

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/weir-dev/weir/internal/backend"
	"github.com/weir-dev/weir/pkg/limiter"
	"github.com/weir-dev/weir/pkg/policy"
	"github.com/weir-dev/weir/pkg/store"
)

const (
	// freshFor is how long an answer stands. An outage is seen that late by the
	// controller, and at once by sidecars.
	freshFor = 10 * time.Second
	// timeout bounds one call.
	timeout = time.Second
	// resetTimeout bounds a reset, for which Redis looks at all its keys.
	resetTimeout = 10 * time.Second
)

// An Opener opens a store with the values of the Secret it names. It does not wait
// for a connection.
type Opener func(of policy.Store, secret map[string][]byte) (backend.Backend, error)

// A Prober asks stores and remembers their answers for a moment. It is safe for
// concurrent use.
type Prober struct {
	clock clock.PassiveClock
	open  Opener
	began time.Time

	mu      sync.Mutex // guards all below
	answers map[policy.Store]answer
	said    map[policy.Store]string // how the last call failed, as statuses show it
	floors  map[string]*floor       // by policy.Store.Server
}

// A floor is what is known of the clock of a server, or of the one of several that is
// furthest behind.
type floor struct {
	store.Floor
	asked    time.Time
	memories []limiter.MemoryID // volatile ones, as they were when the clock was not behind
	doubtful limiter.Instant    // store.Reached.Doubtful
	durable  recollection
}

// maxFloors bounds how many servers are remembered, and how many failures.
const maxFloors = 1000

type answer struct {
	facts store.Facts
	err   error
	at    time.Time
}

// New returns a Prober.
func New(open Opener) *Prober { return newProber(clock.RealClock{}, open) }

func newProber(c clock.PassiveClock, open Opener) *Prober {
	return &Prober{clock: c, open: open, began: c.Now(), answers: make(map[policy.Store]answer), said: make(map[policy.Store]string), floors: make(map[string]*floor)}
}

// Probe returns what a store says of itself. It blocks for at most a second. An error
// means that the store could not be asked, or does not let itself be used. Like those of all
// methods, it has nothing of what the server sent.
func (p *Prober) Probe(ctx context.Context, of policy.Store, secret map[string][]byte) (store.Facts, error) {
	if a, ok := p.remembered(of); ok {
		return a.facts, a.err
	}
	a, sent := answer{at: p.clock.Now()}, p.local()
	a.err = p.with(ctx, of, secret, func(ctx context.Context, s backend.Backend) (err error) {
		a.facts, err = s.Probe(ctx)
		return err
	})
	if a.err == nil {
		p.saw(of, a.facts, sent)
	}
	p.remember(of, a)
	return a.facts, a.err
}

// Facts returns what a store says of itself now. It asks each time and blocks for at most
// a second.
func (p *Prober) Facts(ctx context.Context, of policy.Store, secret map[string][]byte) (facts store.Facts, err error) {
	sent := p.local()
	err = p.with(ctx, of, secret, func(ctx context.Context, s backend.Backend) error {
		var failed error
		facts, failed = s.Probe(ctx)
		return failed
	})
	if err == nil {
		p.saw(of, facts, sent)
	}
	return facts, err
}

// Reached returns what the clock of a store has certainly reached by now, by what the store
// said before. That holds also when it lost its memory since then, and its clock shows less.
// It is zero when nothing is known.
func (p *Prober) Reached(of policy.Store) store.Reached {
	p.mu.Lock()
	defer p.mu.Unlock()
	if f, ok := p.floors[of.Server()]; ok {
		return store.Reached{Now: f.At(p.local()), Doubtful: f.doubtful}
	}
	return store.Reached{}
}

// saw notes what the clock of a store shows, and whether it is in the memory that it was
// in before, by an answer to what was asked at a local instant.
func (p *Prober) saw(of policy.Store, facts store.Facts, sent int64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	name := of.Server()
	f, ok := p.floors[name]
	if !ok {
		p.forget()
		f = &floor{}
		p.floors[name] = f
	}
	f.asked = p.clock.Now()
	f.durable.see(facts, p.began.Add(time.Duration(sent)), f.asked)
	behind := facts.Oldest < f.At(sent)
	f.Looked(facts.Oldest, sent, p.local())
	if !behind {
		f.memories = facts.Volatile.Memories
		return
	}
	if !slices.Equal(f.memories, facts.Volatile.Memories) {
		f.doubtful = f.Behind()
	}
}

// forget makes room for another floor: the one of the server that was not asked for
// longest goes.
func (p *Prober) forget() {
	if len(p.floors) < maxFloors {
		return
	}
	var oldest string
	for name, f := range p.floors {
		if oldest == "" || f.asked.Before(p.floors[oldest].asked) {
			oldest = name
		}
	}
	delete(p.floors, oldest)
}

// local is the local instant of the floors.
func (p *Prober) local() int64 { return int64(p.clock.Since(p.began)) }

// Clock returns what a store's clock reads. It asks each time and blocks for at
// most a second.
func (p *Prober) Clock(ctx context.Context, of policy.Store, secret map[string][]byte) (now limiter.Instant, err error) {
	err = p.with(ctx, of, secret, func(ctx context.Context, s backend.Backend) (err error) {
		now, err = clockOf(ctx, s)
		return err
	})
	return now, err
}

// Reset sets all counters of a limit back, or the one of hash when it is not nil, and
// returns when that was, on the store's clock. It blocks for at most resetTimeout. After
// an error some may be set back.
func (p *Prober) Reset(ctx context.Context, of policy.Store, secret map[string][]byte, scope store.Scope, hash *string) (at limiter.Instant, err error) {
	err = p.within(ctx, resetTimeout, of, secret, func(ctx context.Context, s backend.Backend) (err error) {
		if _, err := s.Reset(ctx, scope, hash); err != nil {
			return err
		}
		at, err = clockOf(ctx, s)
		return err
	})
	return at, err
}

// clockOf returns what the store's clock reads.
func clockOf(ctx context.Context, s backend.Backend) (limiter.Instant, error) {
	// A peek changes nothing, so any name will do.
	key := store.Key{Scope: store.Scope{Cluster: "weir", Namespace: "weir", Policy: "clock", Limit: "clock"}}
	params := limiter.Params{Rates: []limiter.Rate{{Limit: 1, Window: limiter.MinWindow}}}
	res, err := s.Apply(ctx, key, params, limiter.Command{Op: limiter.Peek, Min: 1, Want: 1})
	return res.Now, err
}

// with connects for one call only: a connection kept for every server that a
// policy once named would never be given back.
func (p *Prober) with(ctx context.Context, of policy.Store, secret map[string][]byte, ask func(context.Context, backend.Backend) error) error {
	return p.within(ctx, timeout, of, secret, ask)
}

func (p *Prober) within(ctx context.Context, most time.Duration, of policy.Store, secret map[string][]byte, ask func(context.Context, backend.Backend) error) error {
	ctx, cancel := context.WithTimeout(ctx, most)
	defer cancel()
	s, err := p.open(of, secret)
	if err != nil {
		return err
	}
	err = ask(ctx, s)
	if closeErr := s.Close(); err == nil && closeErr != nil {
		err = fmt.Errorf("closing the connection: %w", closeErr)
	}
	return p.shown(ctx, of, err)
}

// shown returns the error of a call without what the server sent, as statuses may show it.
// The log has all of it, when it is another than before.
func (p *Prober) shown(ctx context.Context, of policy.Store, err error) error {
	out := store.Plain(err)
	p.mu.Lock()
	defer p.mu.Unlock()
	if out == nil {
		delete(p.said, of)
		return nil
	}
	if p.said[of] == out.Error() {
		return out
	}
	if len(p.said) >= maxFloors {
		clear(p.said)
	}
	p.said[of] = out.Error()
	log.FromContext(ctx).WithName("stores").Info("A store cannot be used", "type", of.Type, "address", of.Address, "error", err.Error())
	return out
}

func (p *Prober) remembered(of policy.Store) (answer, bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	a, ok := p.answers[of]
	return a, ok && p.fresh(a)
}

// remember also forgets answers that no longer stand: policies come and go.
func (p *Prober) remember(of policy.Store, a answer) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for old, b := range p.answers {
		if !p.fresh(b) {
			delete(p.answers, old)
		}
	}
	p.answers[of] = a
}

func (p *Prober) fresh(a answer) bool { return p.clock.Since(a.at) < freshFor }
