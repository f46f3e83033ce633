package redis

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	goredis "github.com/redis/go-redis/v9"

	"github.com/weir-dev/weir/pkg/limiter"
	"github.com/weir-dev/weir/pkg/store"
)

const (
	// maxTries bounds how often Update decides again because others were faster.
	maxTries = 500
	// maxBackoff bounds the wait before the next try. It grows with the tries, and is
	// random, so that the callers of one value do not meet again.
	maxBackoff = 4 * time.Millisecond
)

// ErrContended is the cause of the *store.UnavailableError of an Update that others
// were faster than, each time it tried.
var ErrContended = errors.New("others changed the value each time before it could be written")

// A Strategy decides by the value that it left behind, old, which is nil when there
// is none: it was never made, is no longer kept, or was forgotten. now is the time of
// the server, and memory what the serving instance remembers: windows that began
// before memory.Since may hold grants that it has forgotten, and a clock that shows
// less than memory.Latest has stepped back.
//
// It returns the value to leave behind, nil to leave everything as it is, and for how
// long it is kept, at least a microsecond: until nothing in it counts any more, and
// longer by how far a clock may step back without being noticed. An error leaves
// everything as it is.
//
// It may be called many times for one decision, and the last call counts. So it must
// have no effect but what it returns.
type Strategy func(old []byte, now limiter.Instant, memory limiter.Memory) (next []byte, keep limiter.Micros, err error)

// Update applies a strategy of the caller's own to the value of a key, which is not
// one of the counters of Apply. No other Update of the key comes in between, and the
// guarantees of the package hold as they do for Apply: what another instance granted
// is not in memory, nor is anything written when the instance changes meanwhile.
//
// It decides by optimistic concurrency (WATCH, MULTI, EXEC), three round trips a try,
// and tries again when another was faster. The error is that of decide when that
// failed, and otherwise as Apply's; ErrContended is a cause of its own. An Update
// whose error is unavailable may still have been carried out. Over HTTP there is no WATCH,
// so every Update is an error there.
func (s *Store) Update(ctx context.Context, key store.Key, decide Strategy) error {
	if s.rest != nil {
		return fmt.Errorf("%s: Update needs WATCH, which there is not over HTTP: name the address of the server instead", s.name)
	}
	keys := valueKeysOf(key)
	for try := range maxTries {
		done, err := s.try(ctx, keys, decide)
		if done || err != nil {
			return err
		}
		select {
		case <-time.After(rand.N(min(maxBackoff, time.Duration(try+1)*50*time.Microsecond))):
		case <-ctx.Done():
			return s.explain(ctx.Err())
		}
	}
	return s.explain(fmt.Errorf("%s: %w", key, ErrContended))
}

// try decides once, and reports whether nobody was faster. The client never learns of
// an error, so it does not run a transaction again whose outcome is unknown.
func (s *Store) try(ctx context.Context, keys []string, decide Strategy) (done bool, err error) {
	var failed error
	err = s.client.Watch(ctx, func(tx *goredis.Tx) error {
		done, failed = s.transact(ctx, tx, keys, decide)
		return nil
	}, keys...)
	if err != nil {
		return false, s.explain(err)
	}
	return done, failed
}

func (s *Store) transact(ctx context.Context, tx *goredis.Tx, keys []string, decide Strategy) (done bool, err error) {
	reply, err := s.look.run(ctx, tx, keys, nil)
	if err != nil {
		return false, s.explain(err)
	}
	seen, err := decodeLook(reply)
	if err != nil {
		return false, fmt.Errorf("%s: %w", s.name, err)
	}
	if seen.began {
		_ = s.Warm(ctx) // as Apply does; the guard that is watched has changed
		return false, nil
	}
	next, keep, err := decide(seen.value, seen.now, seen.memory)
	if err != nil || next == nil {
		return true, err
	}
	if keep <= 0 {
		return false, fmt.Errorf("%s: the strategy keeps its value for %dµs, must be at least 1", s.name, keep)
	}
	until := int64(seen.now.Add(keep)+999) / 1000
	put := newCall(ctx, "eval", s.put.text, keys, []any{seen.line, int64(seen.now), next, until})
	_, err = tx.TxPipelined(ctx, func(pipe goredis.Pipeliner) error { return pipe.Process(ctx, put) })
	switch {
	case errors.Is(err, goredis.TxFailedErr):
		return false, nil
	case goredis.HasErrorPrefix(err, "EXECABORT") && put.Err() != nil:
		return false, s.explain(put.Err()) // why it was not even queued
	case err != nil:
		return false, s.explain(err)
	}
	return put.Val() == int64(1), nil
}

// A look is what Update decides by.
type look struct {
	began  bool // the memory began with it
	now    limiter.Instant
	memory limiter.Memory
	line   string // that identifies the instance
	value  []byte // nil for none
}

// decodeLook reads the reply of lua/look.lua.
func decodeLook(reply any) (look, error) {
	list, _ := reply.([]any)
	if len(list) != 6 {
		return look{}, fmt.Errorf("the script answered %T of %d, which is not a look", reply, len(list))
	}
	var ints [4]int64
	for i := range ints {
		v, ok := list[i].(int64)
		if !ok {
			return look{}, fmt.Errorf("the script answered %T at %d, not an integer", list[i], i)
		}
		ints[i] = v
	}
	l := look{
		began: ints[0] == 1, now: limiter.Instant(ints[1]),
		memory: limiter.Memory{Since: limiter.Instant(ints[2]), Latest: limiter.Instant(ints[3])},
	}
	line, ok := list[4].(string)
	if !ok {
		return look{}, fmt.Errorf("the script answered %T at 4, not a string", list[4])
	}
	l.line = line
	if text, ok := list[5].(string); ok {
		l.value = []byte(text)
	}
	return l, nil
}
