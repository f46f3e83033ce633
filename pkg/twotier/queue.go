package twotier

import "container/list"

// A waiter is a request that credits in hand and remembered refusals did not decide. The
// key's mu guards it.
type waiter struct {
	cost     int64
	came     int64         // instant
	lost     error         // why the first call that it waited for and that failed did so
	place    *list.Element // in the queue, nil when it is not there
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
	if w.place == nil {
		w.place = q.PushBack(w)
	}
}

// remove takes w out, if it is there.
func (q *queue) remove(w *waiter) {
	if w.place != nil {
		q.Remove(w.place)
		w.place = nil
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

// keepPaying is keep, but before anybody else sees the account it pays for those that
// wait; mu is held.
func (k *Key) keepPaying(s *settings, a Account, now int64) {
	e := k.hold(s, a, now)
	if b := k.busy; b != nil {
		b.cost -= b.queue.pay(k.limiter(), e)
		if b.queue.Len() > 0 && a.Back.Held(now) > 0 {
			a = k.accountOf(e, e.drain(), e.refused.Swap(0))
			a.Front, a.Back = a.Back, a.Front
			e = k.hold(s, a, now)
			b.cost -= b.queue.pay(k.limiter(), e)
		}
	}
	k.show(e, a)
}

// payWaiting pays for those that wait from a lease that has got credits back; mu is held.
// They know when the call ends that they wait for.
func (k *Key) payWaiting(e *lease) {
	if b := k.busy; b != nil && b.queue.Len() > 0 {
		b.cost -= b.queue.pay(k.limiter(), e)
	}
}

// enter registers a request. It returns false when the key was evicted in the meantime.
func (k *Key) enter(w *waiter) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.evicted {
		return false
	}
	if k.busy == nil {
		k.busy = new(busy)
	}
	k.busy.requests++
	k.busy.cost += w.cost
	return true
}

// decided returns the decision on the request, and reports whether there is one that
// still holds; mu is held. A request that is woken late may be so after the credits
// died.
func (k *Key) decided(w *waiter) (d Decision, ok bool) {
	if !w.decided {
		return Decision{}, false
	}
	if e := w.decision.from; e != nil && k.limiter().clock.now() >= e.deadline {
		w.decided, w.decision = false, Decision{}
		k.busy.cost += w.cost
		return Decision{}, false
	}
	w.claimed = true
	d = w.decision
	k.setPaid(&d)
	return d, true
}

// leave ends what enter began. Units granted to a request that went away before it
// knew go back.
func (k *Key) leave(w *waiter) {
	k.unregister(w)
	if w.decided && !w.claimed {
		w.decision.Cancel()
	}
}

// unregister is leave without what goes back.
func (k *Key) unregister(w *waiter) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.busy.queue.remove(w)
	k.busy.requests--
	if !w.decided {
		k.busy.cost -= w.cost
	}
	k.rest()
}
