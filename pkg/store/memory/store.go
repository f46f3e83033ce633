package memory

import (
	"context"
	"errors"
	"fmt"
	"hash/maphash"
	"sync"
	"sync/atomic"

	"github.com/weir-dev/weir/pkg/limiter"
	"github.com/weir-dev/weir/pkg/store"
)

// shards bounds how often two keys wait for each other.
const shards = 64

// name is what users call this store.
const name = "the controller's store"

// ErrSealed is the cause of every refusal after Seal.
var ErrSealed = errors.New("the controller is handing over to the next leader")

// Options configure a Store.
type Options struct {
	// Clock returns the store's time, which must never step back: Clock.Now.
	Clock func() limiter.Instant

	// Ledger is what the predecessor handed over; nil when there was none, and
	// then every window that is already open grants nothing. New takes it over:
	// a ledger goes into one store.
	Ledger *Ledger

	// Overlap is how long a predecessor may go on serving: the windows that begin
	// meanwhile grant nothing either. Usually 0.
	Overlap limiter.Micros

	// Absences returns when holders that a predecessor served were not served here yet,
	// for one limit: as it is known when Clock was read last, which is before it is
	// called. It does not block, and its result is not written to any more. Nil: nobody
	// ever was served before.
	Absences func(store.Scope) []limiter.Absence

	// First says that no store ever served these counters: there is no grant to
	// have forgotten, so the windows that are already open are served as well.
	// Otherwise a new installation would leave its longest window unserved.
	First bool

	// Keep is given the journal of each policy when one is needed, and does not block. Nil:
	// no counter is durable. Term is the leader's, higher than any before.
	Keep func(*Journal)
	Term uint64
}

// A Store applies commands to counters in memory. It is safe for concurrent use
// and never blocks for long.
type Store struct {
	clock     func() limiter.Instant
	memory    limiter.Memory
	forgotten map[owner]Forgotten // not written to after New
	seed      maphash.Seed
	sealed    atomic.Bool   // set once; decisions read it under their shard's lock
	swept     atomic.Uint32 // calls so far: which shard the next one sweeps
	resets    atomic.Pointer[resets]
	absences  func(store.Scope) []limiter.Absence
	begins    limiter.Instant // when no predecessor serves any more
	term      uint64
	keep      func(*Journal)
	journals  sync.Map // by owner: *Journal
	shards    [shards]shard
}

// New returns a store whose memory begins now or, with a ledger, where the
// ledger's did.
func New(o Options) *Store {
	now := o.Clock() + 1 // a predecessor may have served up to this very instant
	begins := now.Add(o.Overlap)
	s := &Store{clock: o.Clock, memory: limiter.Memory{Since: begins}, forgotten: map[owner]Forgotten{}, seed: maphash.MakeSeed()}
	s.absences, s.begins, s.term, s.keep = o.Absences, begins, o.Term, o.Keep
	for i := range s.shards {
		s.shards[i].slots, s.shards[i].dropped = map[store.Key]int{}, s.dropped
	}
	switch {
	case o.Ledger != nil:
		s.adopt(o.Ledger, now)
	case o.First:
		s.memory = limiter.Memory{}
	}
	return s
}

// adopt takes over a ledger at the instant now: its counts, and a gap from its
// seal until this store serves.
func (s *Store) adopt(l *Ledger, now limiter.Instant) {
	s.memory = l.memory.After(limiter.Gap{From: l.sealed, To: s.begins}, now)
	s.forget(l.forgotten, now)
	for i, c := range l.counters {
		*s.shard(c.key).counter(c.key) = *c
		l.counters[i] = nil // never are all there twice
	}
}

// Begins returns the instant from which on no predecessor serves.
func (s *Store) Begins() limiter.Instant { return s.begins }

// Apply runs c for one counter. Refusals are results. The error is a
// *store.UnavailableError when ctx is done, the store is sealed or what a durable counter
// may grant cannot be set aside. Any other error names what is wrong with p or c. For a
// durable counter it may wait some milliseconds until that is set aside.
func (s *Store) Apply(ctx context.Context, key store.Key, p limiter.Params, c limiter.Command) (limiter.Result, error) {
	if err := ctx.Err(); err != nil {
		return limiter.Result{}, unavailable(err)
	}
	if err := errors.Join(p.Validate(), c.Validate()); err != nil {
		return limiter.Result{}, fmt.Errorf("%s: %s: %w", name, key, err)
	}
	var res limiter.Result
	var err error
	if s.keeps(&p) {
		res, err = s.applyKept(ctx, key, p, c)
	} else {
		res, err = s.decide(key, p, c)
	}
	if err != nil {
		return limiter.Result{}, err
	}
	s.sweep(res.Now)
	return res, nil
}

// sweep has one shard look for what has ended. A sealed store does not change.
func (s *Store) sweep(now limiter.Instant) {
	sh := &s.shards[s.swept.Add(1)%shards]
	sh.mu.Lock()
	defer sh.mu.Unlock()
	if !s.sealed.Load() {
		sh.sweep(now)
	}
}

func (s *Store) decide(key store.Key, p limiter.Params, c limiter.Command) (res limiter.Result, err error) {
	sh := s.shard(key)
	sh.mu.Lock()
	defer sh.mu.Unlock()
	if s.sealed.Load() {
		return res, unavailable(ErrSealed)
	}
	now := s.clock() // under the lock, so that a key sees time in order
	c.Memory = s.recall(key, p.Retention)
	if c.Op == limiter.Peek {
		_, res = p.Step(sh.state(key), now, c)
		return res, nil
	}
	counter := sh.counter(key)
	counter.State, res = p.Step(counter.State, now, c)
	return res, nil
}

// Seal makes every later Apply fail with ErrSealed and waits for those under way:
// nothing changes any more.
// It may be called more than once.
func (s *Store) Seal() {
	s.sealed.Store(true)
	for i := range s.shards {
		s.shards[i].mu.Lock()
		s.shards[i].mu.Unlock() //nolint:staticcheck // empty on purpose: the caller that held the lock has decided
	}
}

// Len returns the number of counters held, among them ended ones that were not
// swept yet.
func (s *Store) Len() int {
	n := 0
	for i := range s.shards {
		s.shards[i].mu.Lock()
		n += len(s.shards[i].counters)
		s.shards[i].mu.Unlock()
	}
	return n
}

// Has reports whether the counter is among those held.
func (s *Store) Has(key store.Key) bool {
	sh := s.shard(key)
	sh.mu.Lock()
	defer sh.mu.Unlock()
	_, ok := sh.slots[key]
	return ok
}

// Counts reports whether anything that the counter granted still counts at the instant now.
func (s *Store) Counts(key store.Key, now limiter.Instant) bool {
	sh := s.shard(key)
	sh.mu.Lock()
	defer sh.mu.Unlock()
	i, ok := sh.slots[key]
	return ok && sh.counters[i].Counts(now)
}

func (s *Store) shard(key store.Key) *shard {
	return &s.shards[maphash.Comparable(s.seed, key)%shards]
}

func unavailable(cause error) error { return &store.UnavailableError{Store: name, Cause: cause} }
