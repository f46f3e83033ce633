package twotier

import (
	"context"
	"runtime"

	"github.com/weir-dev/weir/pkg/limiter"
	"github.com/weir-dev/weir/pkg/twotier/account"
)

// Requests of one key that come while the store is being asked for others share the
// next call, as writers of a log share a write (group commit; flat combining, Hendler
// et al. 2010). It takes one unit for each, as many as there are. That is what as
// many takes of one unit would have got at the instant of the call, and all of them
// came before it: the store decides as strictly as if each had asked.
//
// The first request makes its call itself and waits for nobody.

const (
	// maxCalls is how many calls of a key are in progress before requests wait.
	maxCalls = 1
	// maxCombined is how often a request shares a call. When others got all of it so
	// often, it asks for itself.
	maxCombined = 2
)

// A combiner is the requests of a key that share calls. The key's mu guards it.
type combiner struct {
	breaker *Breaker // of the store in force when it formed: nobody joins behind a call to another
	calls   int      // in progress
	next    *group   // that waits for the next call, nil when nobody does
}

// A group is the requests that share one call.
type group struct {
	size int64         // requests that did not give up; guarded by the key's mu
	done chan struct{} // closed when the fields below are set

	cfg      *settings     // by which the store was asked
	err      error         // why it did not answer
	ok       bool          // unless the requests have to be decided again
	decision replyDecision // guarded by the key's mu
	deadline int64         // instant from which on nothing is admitted by it
}

// combines reports whether requests of the cost may share calls. For greater costs a
// call may get what pays for some, and LeakyBucket gives each request a delay of its
// own. Units without windows have to have a lifetime: a late reply brings many at
// once, and only the lifetime shows that it is late.
func (s *settings) combines(cost int64) bool {
	p := s.Params
	return cost == 1 && p.Algorithm != limiter.LeakyBucket && (p.Algorithm.WindowCoupled() || p.Lifetime > 0)
}

// combineCall decides a request of one unit, by a call of its own when nobody is before it.
func (k *Key) combineCall(ctx context.Context, cfg *settings) (Decision, bool, error) {
	q, g := k.joinGroup(cfg)
	if g == nil {
		defer k.endCombined(q)
		return k.callStore(ctx, cfg, limiter.Command{Op: limiter.Take, Min: 1, Want: 1}, 1)
	}
	if err := k.limiter().clock.wait(ctx, g.done); err != nil && k.leaveGroup(g) {
		return Decision{}, true, err
	}
	if g.err != nil {
		return k.decideUnanswered(ctx, g.cfg, 1, g.err)
	}
	d, ok := k.claim(g)
	return d, ok, nil
}

// joinGroup puts a request into the group that goes next. It returns none when the
// request has to make a call of its own, and depart after it.
func (k *Key) joinGroup(cfg *settings) (*combiner, *group) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.inflight.combiner == nil || k.inflight.combiner.breaker != cfg.breaker {
		k.inflight.combiner = &combiner{breaker: cfg.breaker}
	}
	q := k.inflight.combiner
	if q.calls < maxCalls {
		q.calls++
		return q, nil
	}
	if q.next == nil {
		q.next = &group{done: make(chan struct{})}
	}
	q.next.size++
	return q, q.next
}

// leaveGroup takes a request out of its group, unless that is decided.
func (k *Key) leaveGroup(g *group) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	select {
	case <-g.done:
		return false
	default:
		g.size--
		return true
	}
}

// endCombined ends a call, or goes on with those that wait.
func (k *Key) endCombined(q *combiner) {
	k.mu.Lock()
	defer k.mu.Unlock()
	g := k.nextGroup(q)
	if g != nil && !k.limiter().start(func() { k.runGroups(q, g) }) {
		close(g.done)
		k.nextGroup(q)
	}
}

// runGroups makes calls for a group and for those that come meanwhile.
func (k *Key) runGroups(q *combiner, g *group) {
	for g != nil {
		k.askForGroup(g)
		runtime.Gosched() // its requests may ask again, and would miss the next call by a moment
		k.mu.Lock()
		g = k.nextGroup(q)
		k.mu.Unlock()
	}
}

// nextGroup returns the requests that wait, or none and ends a call; mu is held.
func (k *Key) nextGroup(q *combiner) *group {
	g := q.next
	q.next = nil
	if g != nil && g.size > 0 {
		return g
	}
	q.calls--
	if q.calls == 0 && k.inflight != nil && k.inflight.combiner == q {
		k.inflight.combiner = nil
		k.trimInflight()
	}
	return nil
}

// askForGroup makes the call of a group, to the store in force. It belongs to the
// limiter: a request that gives up fails none of the others.
func (k *Key) askForGroup(g *group) {
	l := k.limiter()
	g.cfg = l.settings.Load()
	if g.cfg.Draining || !g.cfg.combines(1) {
		close(g.done)
		return
	}
	k.mu.Lock()
	take := limiter.Command{Op: limiter.Take, Min: 1, Want: max(g.size, 1)}
	c := k.newCall(g.cfg, take, maxAsks)
	k.mu.Unlock()
	r, ok, err := k.take(l.ctx, c)
	k.mu.Lock()
	defer k.mu.Unlock()
	defer close(g.done)
	if g.err = err; !ok {
		return
	}
	// Grants to requests that gave up go to others, or back.
	g.decision, g.ok = k.settleDirect(c, r, 1, g.size)
	g.deadline = account.DeadlineOf(r.Sent, r.ExpiresIn)
}

// claim decides a request by the answer to its group. It reports false when the
// request has to be decided again.
func (k *Key) claim(g *group) (Decision, bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if !g.ok || g.decision.admits > 0 && k.limiter().clock.now() >= g.deadline {
		return Decision{}, false
	}
	return g.decision.next(k)
}
