package pools

import (
	"net/http"
	"sync/atomic"

	"github.com/weir-dev/weir/pkg/concurrency"
	"github.com/weir-dev/weir/pkg/policy"
)

// A Slot is what a request in flight holds. It has to be released. The zero Slot is of
// a request that needs none.
type Slot struct {
	slot     concurrency.Slot
	enforcer *Enforcer
	of       *inForce
	ignore   bool         // its latency says nothing
	spared   *atomic.Bool // whether it counts as let through without a slot; nil for one that has a slot
}

// Acquire asks for a slot for r, if r needs one. A request that may not pass has a
// refusal; that of one whose client went away while it waited reaches no client. It
// blocks only where the pool has a queue, until the context of r is done at the latest.
func (k *Enforcer) Acquire(r *http.Request) (Slot, *Refusal) {
	for {
		p := k.current.Load()
		if p == nil {
			return Slot{}, nil
		}
		if slot, refusal, decided := k.ask(p, r); decided {
			return slot, refusal
		}
	}
}

// ask asks the guard of p. It does not decide when p is no longer in force and the
// guard was closed meanwhile.
func (k *Enforcer) ask(p *inForce, r *http.Request) (s Slot, refusal *Refusal, decided bool) {
	request := policy.NewRequest(r)
	if p.Exempt(&request) {
		return Slot{}, nil, true
	}
	partition, ignore := p.Partition(&request), p.Ignore(&request) // before there is a slot to lose
	slot, verdict := p.engine.guard.Acquire(r.Context(), concurrency.Request{Partition: partition})
	if verdict == concurrency.Closed && k.current.Load() != p {
		return Slot{}, nil, false
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

// Forward says that the request is forwarded only now: latency counts from here.
func (s *Slot) Forward() { s.slot.Forward() }

// Fenced returns a channel that is closed when the request has to be ended, because
// the share expired; nil when requests are left to finish.
func (s *Slot) Fenced() <-chan struct{} {
	if s.of == nil || !s.of.aborts {
		return nil
	}
	return s.slot.Fenced()
}

// Refusal says why the request was ended when the share expired.
func (s *Slot) Refusal() *Refusal { return s.of.refuse(concurrency.Fenced) }

// Release gives the slot back. Only the first call does, on whichever copy.
func (s *Slot) Release(o concurrency.Outcome) {
	if s.of == nil {
		return
	}
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
