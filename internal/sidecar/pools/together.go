package pools

import (
	"context"
	"errors"
	"net/http"
	"time"

	"github.com/weir-dev/weir/pkg/concurrency"
	"github.com/weir-dev/weir/pkg/concurrency/slots"
	"github.com/weir-dev/weir/pkg/policy"
)

// together are all pools in force, in the order in which requests ask them.
type together struct {
	pools   []*inForce
	maxWait time.Duration // that a request may wait for slots of all of them
}

// of returns the pool that the engine is of, nil when it is of none.
func (t *together) of(e *engine) *inForce {
	if t == nil {
		return nil
	}
	for _, p := range t.pools {
		if p.engine == e {
			return p
		}
	}
	return nil
}

// askAll asks each pool. It does not decide when they are no longer in force and a guard was
// closed meanwhile.
func (k *Enforcer) askAll(all *together, r *http.Request) (s Slot, refusal *Refusal, decided bool) {
	if len(all.pools) > 1 {
		return k.askEach(all, r)
	}
	request := policy.NewRequest(r)
	return k.ask(r.Context(), all, all.pools[0], &request)
}

// askEach asks several pools, in their order.
func (k *Enforcer) askEach(all *together, r *http.Request) (s Slot, refusal *Refusal, decided bool) {
	request := policy.NewRequest(r)
	ctx := r.Context()
	if all.maxWait > 0 {
		waiting, done := context.WithTimeoutCause(ctx, all.maxWait, errWaited)
		defer done()
		ctx = waiting
	}
	var held Slot
	kept := false
	defer func() {
		if !kept { // or the request panics
			held.Release(concurrency.Ignored)
		}
	}()
	for _, p := range all.pools {
		slot, refusal, decided := k.ask(ctx, all, p, &request)
		if refusal != nil || !decided {
			return Slot{}, refusal, decided
		}
		held.add(slot)
	}
	if all.maxWait > 0 {
		if refusal := held.lapsed(); refusal != nil {
			return Slot{}, refusal, true
		}
	}
	kept = true
	return held, nil, true
}

// errWaited ends the wait of a request that waited as long as it may for all pools together.
var errWaited = errors.New("the request waited for slots of its pools as long as it may")

// lapsed refuses a request that waited for one pool's slot while the share ran out by which it
// has that of another: nil when all are good. Requests in flight by an old share end within the
// margin; this request would only begin.
func (s *Slot) lapsed() *Refusal {
	if !s.Held() {
		return nil
	}
	for each := s; each != nil; each = each.next {
		if !each.of.shadow && each.slot.Lapsed() {
			each.of.tallies.of(slots.Rest).count(concurrency.Fenced, false)
			return each.of.refuse(concurrency.Fenced)
		}
	}
	return nil
}

// add adds the slot of another pool, if it is one.
func (s *Slot) add(other Slot) {
	switch {
	case !other.Held():
	case !s.Held():
		*s = other
	default:
		other.next = s.next
		s.next = &other
	}
}

// Next returns the slot of another pool, nil when there is none.
func (s *Slot) Next() *Slot { return s.next }
