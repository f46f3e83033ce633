package pools

import (
	"context"
	"errors"
	"net/http"
	"sync/atomic"

	"github.com/weir-dev/weir/pkg/concurrency"
	"github.com/weir-dev/weir/pkg/policy"
)

// A Slot is what a request in flight holds: a slot of each pool that it belongs to. It has
// to be released. The zero Slot is of a request that needs none.
type Slot struct {
	slot     concurrency.Slot
	enforcer *Enforcer
	of       *inForce
	ignore   bool         // its latency says nothing
	spared   *atomic.Bool // whether it counts as let through without a slot; nil for one that has a slot
	next     *Slot        // of another pool; nil for none
}

// Acquire asks for the slots that r needs, in the order of the pools' names. A request that
// may not pass has the refusal of the first pool that gave none, and holds no slot of the
// others; that of one whose client went away while it waited reaches no client. Acquire
// blocks only where a pool has a queue: at most for the longest MaxWait of all pools, and
// until the context of r is done.
func (k *Enforcer) Acquire(r *http.Request) (Slot, *Refusal) {
	all := k.current.Load()
	if all == nil {
		return Slot{}, nil
	}
	return k.acquire(all, r)
}

func (k *Enforcer) acquire(all *together, r *http.Request) (Slot, *Refusal) {
	for ; all != nil; all = k.current.Load() {
		if slot, refusal, decided := k.askAll(all, r); decided {
			return slot, refusal
		}
	}
	return Slot{}, nil
}

// ask asks the guard of a pool. It does not decide when that is no longer in force and the
// guard was closed meanwhile.
func (k *Enforcer) ask(ctx context.Context, all *together, p *inForce, r *policy.Request) (s Slot, refusal *Refusal, decided bool) {
	if p.Exempt(r) {
		return Slot{}, nil, true
	}
	partition, ignore := p.Partition(r), p.Ignore(r) // before there is a slot to lose
	value, outcome, missing := p.Value(r)
	switch outcome {
	case policy.Counted:
	case policy.Skipped:
		return Slot{}, nil, true
	default:
		return Slot{}, p.without(missing), true
	}
	slot, verdict := p.engine.guard.Acquire(ctx, concurrency.Request{Partition: partition, Key: value})
	if verdict == concurrency.Closed && k.current.Load() != all {
		return Slot{}, nil, false
	}
	if verdict == concurrency.Canceled && errors.Is(context.Cause(ctx), errWaited) {
		verdict = concurrency.Expired
	}
	p.tallies.of(partition).count(verdict, p.shadow)
	if verdict == concurrency.Admitted {
		return Slot{slot: slot, enforcer: k, of: p, ignore: ignore}, nil, true
	}
	k.done(p.engine) // it may have been the last that waited
	if p.shadow {
		return p.spare(), nil, true
	}
	return Slot{}, p.refuse(verdict), true
}

// spare returns what a request holds that passes without a slot: a place in the count.
func (p *inForce) spare() Slot {
	counts := new(atomic.Bool)
	counts.Store(true)
	p.engine.spared.add()
	return Slot{of: p, spared: counts}
}

// Held reports whether there is something to release.
func (s *Slot) Held() bool { return s.of != nil }

// Forward says that the request is forwarded only now: latency counts from here, in all
// pools.
func (s *Slot) Forward() {
	for each := s; each != nil; each = each.next {
		each.slot.Forward()
	}
}

// Fenced returns a channel that is closed when the request has to be ended, because
// the share of this one pool expired; nil when requests are left to finish.
func (s *Slot) Fenced() <-chan struct{} {
	if s.of == nil || !s.of.aborts {
		return nil
	}
	return s.slot.Fenced()
}

// Refusal says why the request was ended when the share of a pool expired.
func (s *Slot) Refusal() *Refusal {
	for each := s; each != nil; each = each.next {
		select {
		case <-each.Fenced():
			return each.of.refuse(concurrency.Fenced)
		default:
		}
	}
	return s.of.refuse(concurrency.Fenced)
}

// Release gives the slots of all pools back. Only the first call does, on whichever copy.
func (s *Slot) Release(o concurrency.Outcome) {
	if s.of != nil {
		s.releaseAll(o)
	}
}

func (s *Slot) releaseAll(o concurrency.Outcome) {
	for each := s; each != nil; each = each.next {
		each.release(o)
	}
}

func (s *Slot) release(o concurrency.Outcome) {
	if s.spared != nil {
		if s.spared.CompareAndSwap(true, false) {
			s.of.engine.spared.remove()
		}
		return
	}
	if s.ignore {
		o = concurrency.Ignored
	}
	s.slot.Release(o)
	s.enforcer.done(s.of.engine)
}

// done looks whether a request that ended was the last of a retired guard.
func (k *Enforcer) done(e *engine) {
	if !e.retired.Load() {
		return
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	k.finish(e)
}
