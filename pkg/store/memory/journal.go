package memory

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/weir-dev/weir/pkg/limiter"
	"github.com/weir-dev/weir/pkg/store"
	"github.com/weir-dev/weir/pkg/store/journal"
)

const (
	// patience is how long a decision waits for units to be set aside: less than callers
	// wait for an answer.
	patience = 40 * time.Millisecond
	// comeBack is when to ask again what was not set aside by then.
	comeBack = 250 * limiter.Millisecond
	// maxRecord bounds the entries of one policy, in bytes before they are compressed.
	maxRecord = 1000 << 10
)

// A Journal is the journal of one policy: what the store grants of durable counters is set
// aside in its records first. The caller that Options.Keep gives it to carries them: Load with
// what was written last, then again and again Next, and Written when that is known to be
// written. The methods are safe for concurrent use.
type Journal struct {
	of    *Store
	owner owner
	wake  chan struct{}

	mu      sync.Mutex       // taken after a shard's
	journal *journal.Journal // nil until Load
	gaps    []limiter.Gap
	pace    journal.Pace
	sent    uint64 // number of the record in flight
	size    int    // of it
	opening map[string]opening
	failed  error         // why the last attempt failed
	changed chan struct{} // closed when Load or Written is called
}

// Namespace and Policy name the policy.
func (k *Journal) Namespace() string { return k.owner.namespace }

// Policy returns its name.
func (k *Journal) Policy() string { return k.owner.policy }

// Wake receives when Next may have something to say earlier than it said.
func (k *Journal) Wake() <-chan struct{} { return k.wake }

// journal returns the policy's, which is made when it is asked for first.
func (s *Store) journal(o owner) *Journal {
	if k, ok := s.journals.Load(o); ok {
		return k.(*Journal)
	}
	k, was := s.journals.LoadOrStore(o, &Journal{of: s, owner: o, wake: make(chan struct{}, 1), changed: make(chan struct{})})
	if !was {
		s.keep(k.(*Journal))
	}
	return k.(*Journal)
}

// Load goes on from the record that was written last, nil for none, and may be called
// again until a record of this term is written. gaps are the spans in which holders may
// have begun windows by themselves since records are kept. After an error nothing is
// granted.
func (k *Journal) Load(data []byte, gaps []limiter.Gap) error {
	var from journal.Record
	if data != nil {
		var err error
		if from, err = decodeRecord(data); err != nil {
			return err
		}
	}
	known := k.of.memory.Since
	if f, ok := k.of.forgotten[k.owner]; ok {
		known = f.Since
	}
	now := k.of.clock()
	k.mu.Lock()
	defer k.mu.Unlock()
	k.journal, k.gaps = journal.New(k.of.term, now, from, known, maxRecord), gaps
	k.turn(nil)
	return nil
}

// turn lets waiting decisions look again.
func (k *Journal) turn(failed error) {
	k.failed = failed
	close(k.changed)
	k.changed = make(chan struct{})
}

// Fail says why records can neither be read nor written now.
func (k *Journal) Fail(err error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.failed = err
}

// Fence says that a later term has begun: the store grants nothing of the policy's durable
// counters any more.
func (k *Journal) Fence() {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.journal != nil {
		k.journal.Fence()
	}
	k.turn(ErrSealed)
}

// Next returns a record that is to be written now, or when to ask again: 0 for not before
// Wake. It has to be written, or Load be called, before Next is called again.
func (k *Journal) Next() (data []byte, after time.Duration, err error) {
	k.open()
	k.mu.Lock()
	now := k.of.clock()
	due, urgent := false, false
	if k.journal != nil {
		due, urgent = k.journal.Due()
	}
	wait := k.pace.Next(urgent).Sub(now)
	if !due || wait > 0 {
		k.mu.Unlock()
		if due {
			after = time.Duration(wait) * time.Microsecond
		}
		return nil, after, nil
	}
	dirty, pace := k.journal.Dirty(), k.pace.Of()
	k.mu.Unlock()
	for _, key := range dirty {
		k.enter(key, pace)
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	record := k.journal.Write(now)
	if data, err = encodeRecord(&record); err != nil {
		return nil, 0, err
	}
	k.sent, k.size = record.Seq, len(data)
	return data, 0, nil
}

// enter has the next record list a counter.
func (k *Journal) enter(key journal.Key, pace limiter.Micros) {
	full := store.Key{Scope: k.scope(key.Limit), Hash: key.Hash}
	sh := k.of.shard(full)
	sh.mu.Lock()
	defer sh.mu.Unlock()
	k.mu.Lock()
	defer k.mu.Unlock()
	i, ok := sh.slots[full]
	if !ok || sh.counters[i].account == nil {
		k.journal.Forget(key)
		return
	}
	c := &sh.counters[i]
	k.journal.Enter(key, c.account, c.State, k.of.clock(), pace)
}

func (k *Journal) scope(limit string) store.Scope {
	return store.Scope{Cluster: k.owner.cluster, Namespace: k.owner.namespace, Policy: k.owner.policy, Limit: limit}
}

// Written says that the record of the last Next is.
func (k *Journal) Written() {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.journal.Acknowledge(k.sent)
	k.pace = k.pace.Wrote(k.of.clock(), k.size)
	k.turn(nil)
	k.signal() // for what became due meanwhile
}

// Began reports whether a record of this term was written.
func (k *Journal) Began() bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.journal != nil && k.journal.Began()
}

func (k *Journal) signal() {
	select {
	case k.wake <- struct{}{}:
	default:
	}
}

// until waits until the journal says so, which is looked at with the lock held.
func (k *Journal) until(ctx context.Context, done func(*journal.Journal) bool) error {
	for {
		k.mu.Lock()
		if k.journal != nil && done(k.journal) {
			k.mu.Unlock()
			return nil
		}
		changed, failed := k.changed, k.failed
		k.mu.Unlock()
		k.signal()
		select {
		case <-changed:
		case <-ctx.Done():
			if failed == nil {
				failed = ctx.Err()
			}
			return unavailable(fmt.Errorf("the record of policy %s/%s: %w", k.owner.namespace, k.owner.policy, failed))
		}
	}
}
