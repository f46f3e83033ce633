package memory

import (
	"context"
	"maps"

	"github.com/weir-dev/weir/pkg/limiter"
	"github.com/weir-dev/weir/pkg/store"
	"github.com/weir-dev/weir/pkg/store/journal"
)

// resets are the limits and the counters that were set back. It is not written to.
type resets struct {
	limits map[store.Scope]bool
	keys   map[store.Key]bool
}

func (r *resets) has(k store.Key) bool { return r != nil && (r.limits[k.Scope] || r.keys[k]) }

// Reset sets all counters of a limit back, or the one of hash, and returns how many there
// were. Each begins with a full limit, by the store's clock; units in hand stay good, and
// what the store had forgotten of the open windows counts no more, until the next leader
// takes over. The error is a *store.UnavailableError when ctx is done or the store is
// sealed; some counters may be set back then.
func (s *Store) Reset(ctx context.Context, scope store.Scope, hash *string) (int, error) {
	s.note(scope, hash)
	if s.keep != nil {
		k := s.journal(ownerOf(scope))
		if err := k.until(ctx, func(j *journal.Journal) bool { j.Reset(scope.Limit, hash); return true }); err != nil {
			return 0, err
		}
		k.signal()
	}
	n := 0
	for i := range s.shards {
		if err := ctx.Err(); err != nil {
			return n, unavailable(err)
		}
		done, err := s.resetIn(&s.shards[i], scope, hash)
		n += done
		if err != nil {
			return n, err
		}
	}
	return n, nil
}

func (s *Store) resetIn(sh *shard, scope store.Scope, hash *string) (n int, err error) {
	sh.mu.Lock()
	defer sh.mu.Unlock()
	if s.sealed.Load() {
		return 0, unavailable(ErrSealed)
	}
	now := s.clock()
	for i := range sh.counters {
		c := &sh.counters[i]
		if c.key.Scope == scope && (hash == nil || c.key.Hash == *hash) {
			c.State = c.State.Reset(now)
			n++
		}
	}
	return n, nil
}

// note has decisions from now on look back no further than the counters.
func (s *Store) note(scope store.Scope, hash *string) {
	for {
		old := s.resets.Load()
		next := &resets{limits: map[store.Scope]bool{}, keys: map[store.Key]bool{}}
		if old != nil {
			maps.Copy(next.limits, old.limits)
			maps.Copy(next.keys, old.keys)
		}
		if hash == nil {
			next.limits[scope] = true
		} else {
			next.keys[store.Key{Scope: scope, Hash: *hash}] = true
		}
		if s.resets.CompareAndSwap(old, next) {
			return
		}
	}
}

// recall returns what the store remembers of a counter.
func (s *Store) recall(key store.Key, kept limiter.Retention) limiter.Memory {
	if s.resets.Load().has(key) {
		return limiter.Memory{Absences: s.absencesOf(key.Scope)}
	}
	return s.memoryOf(key.Scope, kept)
}
