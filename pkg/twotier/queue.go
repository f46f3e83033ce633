package twotier

import (
	"container/list"
	"time"

	"github.com/weir-dev/weir/pkg/twotier/account"
)

// A waiter is a request that held credits and remembered refusals did not decide. The
// key's mu guards it.
type waiter struct {
	cost     int64
	came     int64         // instant
	lost     error         // why the first call that it waited for and that failed did so
	element  *list.Element // in the queue, nil when it is not there
	decided  bool          // by what a call brought
	claimed  bool          // the decision is with its caller
	decision Decision
}

// A queue is the requests that wait for calls of a key, in the order in which they came.
// The grant of a call is for them before any other request sees it: later ones would else
// be faster, again and again, for a request that waits has to be woken first.
type queue struct{ list.List }

// add puts w at the end, unless it is there already.
func (q *queue) add(w *waiter) {
	if w.element == nil {
		w.element = q.PushBack(w)
	}
}

// remove takes w out, if it is there.
func (q *queue) remove(w *waiter) {
	if w.element != nil {
		q.Remove(w.element)
		w.element = nil
	}
}

// first returns the cost of the request that goes next. A call has to pay for it, or
// those that cost less would be paid before it for ever.
func (q *queue) first() int64 { return q.Front().Value.(*waiter).cost } //nolint:forcetypeassert // nothing else is in there

// clear takes all out.
func (q *queue) clear() {
	for q.Len() > 0 {
		q.remove(q.Front().Value.(*waiter)) //nolint:forcetypeassert // nothing else is in there
	}
}

// pay decides those that wait by the lease, takes out those it decided, and returns what
// they cost.
func (q *queue) pay(l *Limiter, e *lease) (cost int64) {
	var next *list.Element
	for at := q.Front(); at != nil; at = next {
		next = at.Next()
		w := at.Value.(*waiter) //nolint:forcetypeassert // nothing else is in there
		if w.decided = e.decide(l, w.cost, &w.decision); w.decided {
			q.remove(w)
			cost += w.cost
		}
	}
	return cost
}

// setAndPay is setAccount, but before anybody else sees the account it pays for those that
// wait; mu is held.
func (k *Key) setAndPay(s *settings, a account.State, now int64) {
	e := k.newLease(s, a, now)
	if b := k.inflight; b != nil {
		b.cost -= b.queue.pay(k.limiter(), e)
		if b.queue.Len() > 0 && a.Back.Held(now) > 0 {
			a = k.accountOf(e, e.drain(), e.refused.Swap(0))
			a.Front, a.Back = a.Back, a.Front
			e = k.newLease(s, a, now)
			b.cost -= b.queue.pay(k.limiter(), e)
		}
	}
	k.publishAccount(e, a)
}

// payWaiting pays for those that wait from a lease that has got credits back; mu is held.
// They know when the call ends that they wait for.
func (k *Key) payWaiting(e *lease) {
	if b := k.inflight; b != nil && b.queue.Len() > 0 {
		b.cost -= b.queue.pay(k.limiter(), e)
	}
}

// register registers a request. It returns false when the key was evicted in the meantime.
func (k *Key) register(w *waiter) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.evicted {
		return false
	}
	if k.inflight == nil {
		k.inflight = new(inflight)
	}
	k.inflight.requests++
	k.inflight.cost += w.cost
	return true
}

// takeDecision returns the decision on the request, and reports whether there is one that
// still holds; mu is held. A request that is woken late may be so after the credits
// died.
func (k *Key) takeDecision(w *waiter) (d Decision, ok bool) {
	if !w.decided {
		return Decision{}, false
	}
	if e := w.decision.from; e != nil && k.limiter().clock.now() >= e.deadline {
		w.decided, w.decision = false, Decision{}
		k.inflight.cost += w.cost
		return Decision{}, false
	}
	w.claimed = true
	d = w.decision
	k.setPaid(&d)
	return d, true
}

// finish ends what register began. Units granted to a request that went away before it
// knew go back.
func (k *Key) finish(w *waiter) {
	k.unregister(w)
	if w.decided && !w.claimed {
		w.decision.Cancel()
	}
}

// unregister is finish without what goes back.
func (k *Key) unregister(w *waiter) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.inflight.queue.remove(w)
	k.inflight.requests--
	if !w.decided {
		k.inflight.cost -= w.cost
	}
	k.trimInflight()
}

// givenUp decides a request whose patience is over.
func (k *Key) givenUp(w *waiter) (Decision, error) {
	k.mu.Lock()
	d, ok := k.takeDecision(w)
	k.mu.Unlock()
	if ok {
		return d, nil
	}
	return k.decideFailed(w.cost, w.lost)
}

// patience returns how long a request goes on to wait for a store that does not answer.
func (k *Key) patience(w *waiter) time.Duration {
	l := k.limiter()
	cfg := l.settings.Load()
	return cfg.breaker.timeout(cfg) - time.Duration(l.clock.now()-w.came)
}
