package memory

import (
	"context"
	"fmt"
	"time"

	"github.com/weir-dev/weir/pkg/limiter"
	"github.com/weir-dev/weir/pkg/store"
	"github.com/weir-dev/weir/pkg/store/journal"
)

// keeps reports whether the counter's grants are set aside where they survive the process.
func (s *Store) keeps(p *limiter.Params) bool { return p.Retention.Durable && s.keep != nil }

// Open has the store keep the durable counters of a limit, and does not wait for that.
// None of them may be granted more than limit in its longest window.
func (s *Store) Open(scope store.Scope, p limiter.Params, limit int64) {
	if !s.keeps(&p) {
		return
	}
	k := s.journal(ownerOf(scope))
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.opening == nil {
		k.opening = map[string]opening{}
	}
	k.opening[scope.Limit] = opening{window: p.Longest().Window, limit: limit, kept: p.Retention}
	k.signal()
}

// An opening is a limit that is to be kept.
type opening struct {
	window limiter.Micros
	limit  int64
	kept   limiter.Retention
}

// open opens what is to be.
func (k *Journal) open() {
	k.mu.Lock()
	all := k.opening
	if k.journal == nil || len(all) == 0 {
		k.mu.Unlock()
		return
	}
	k.opening = nil
	k.mu.Unlock()
	now := k.of.clock()
	for limit, o := range all {
		if k.update(limit, o) {
			continue
		}
		scope := k.scope(limit)
		past := k.of.memoryOf(scope, o.kept).Since
		since := past
		if k.of.holds(scope) {
			since = now // what they were granted before is not in a record
		}
		k.mu.Lock()
		k.journal.Open(limit, journal.Scope{Window: o.window, Limit: o.limit, Past: past, Since: since})
		k.mu.Unlock()
	}
}

// update takes over an edit of a limit that is open, and reports whether it is.
func (k *Journal) update(limit string, o opening) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	if !k.journal.Keeps(limit, o.window) {
		return false
	}
	k.journal.Open(limit, journal.Scope{Window: o.window, Limit: o.limit, Past: limiter.MaxInstant})
	return true
}

// holds reports whether there is a counter of the limit.
func (s *Store) holds(scope store.Scope) bool {
	for i := range s.shards {
		if s.shards[i].holds(scope) {
			return true
		}
	}
	return false
}

func (s *shard) holds(scope store.Scope) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	for i := range s.counters {
		if s.counters[i].key.Scope == scope {
			return true
		}
	}
	return false
}

// Close has the store keep the durable counters of a limit no more, because what is granted
// from now on will not be in a record, and waits until that is written. The error is a
// *store.UnavailableError.
func (s *Store) Close(ctx context.Context, scope store.Scope) error {
	if s.keep == nil {
		return nil
	}
	k := s.journal(ownerOf(scope))
	if err := k.until(ctx, func(j *journal.Journal) bool { j.Close(scope.Limit); return true }); err != nil {
		return err
	}
	return k.until(ctx, (*journal.Journal).Settled)
}

// applyKept decides on a durable counter. It waits a moment for units that are not set
// aside yet.
func (s *Store) applyKept(ctx context.Context, key store.Key, p limiter.Params, c limiter.Command) (limiter.Result, error) {
	k := s.journal(ownerOf(key.Scope))
	late := time.NewTimer(patience)
	defer late.Stop()
	for {
		res, changed, err := s.decideKept(k, key, p, c)
		if changed == nil {
			return res, err
		}
		k.signal()
		select {
		case <-changed:
		case <-ctx.Done():
			return limiter.Result{}, unavailable(ctx.Err())
		case <-late.C:
			return k.later(key.Scope)
		}
	}
}

// later refuses what could not be set aside in time.
func (k *Journal) later(scope store.Scope) (limiter.Result, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.failed != nil {
		return limiter.Result{}, &store.UnavailableError{
			Store: name, Part: scope,
			Cause: fmt.Errorf("cannot set units of limit %q of policy %s/%s aside in the API server: %w", scope.Limit, scope.Namespace, scope.Policy, k.failed),
		}
	}
	return limiter.Result{Reason: limiter.Exhausted, RetryAfter: comeBack, Now: k.of.clock()}, nil
}

// decideKept decides, or returns what is closed when it may be possible.
func (s *Store) decideKept(k *Journal, key store.Key, p limiter.Params, c limiter.Command) (res limiter.Result, changed <-chan struct{}, err error) {
	if !k.ready(key.Scope, &p) {
		k.open()
	}
	sh := s.shard(key)
	sh.mu.Lock()
	defer sh.mu.Unlock()
	if s.sealed.Load() {
		return res, nil, unavailable(ErrSealed)
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	name := journal.Key{Limit: key.Scope.Limit, Hash: key.Hash}
	if k.journal == nil || !k.journal.Keeps(name.Limit, p.Longest().Window) {
		return res, k.changed, nil
	}
	now := s.clock()
	if !s.resets.Load().has(key) {
		c.Memory = limiter.Memory{Since: k.journal.Past(name), Gaps: k.gaps}
	}
	c.Memory.Absences = s.absencesOf(key.Scope)
	i, held := sh.slots[key]
	state := k.journal.State(name, p)
	if held {
		state = sh.counters[i].State
	}
	if c.Op == limiter.Peek {
		_, res = p.Step(state, now, c)
		return res, nil, nil
	}
	counter := sh.counter(key)
	if counter.account == nil {
		counter.account = k.journal.Account(name)
	}
	var waits bool
	counter.State, res, waits = k.journal.Step(name, state, counter.account, p, now, c)
	if due, _ := k.journal.Due(); due {
		k.signal()
	}
	if waits {
		return res, k.changed, nil
	}
	return res, nil, nil
}

// ready reports whether the limit is kept, and has it be otherwise.
func (k *Journal) ready(scope store.Scope, p *limiter.Params) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.journal != nil && k.journal.Keeps(scope.Limit, p.Longest().Window) {
		return true
	}
	if k.opening == nil {
		k.opening = map[string]opening{}
	}
	if _, ok := k.opening[scope.Limit]; !ok {
		r := p.Longest()
		k.opening[scope.Limit] = opening{window: r.Window, limit: r.Limit, kept: p.Retention}
	}
	return false
}

// dropped notes that a counter was dropped. The lock of its shard is held.
func (s *Store) dropped(c *counter) {
	if c.account == nil {
		return
	}
	k := s.journal(ownerOf(c.key.Scope))
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.journal != nil {
		k.journal.Forget(journal.Key{Limit: c.key.Scope.Limit, Hash: c.key.Hash})
	}
}
