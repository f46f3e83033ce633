package absence

import (
	"maps"
	"math/big"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/weir-dev/weir/internal/controlplane/coordinator/podauth"
	"github.com/weir-dev/weir/internal/fleetpb"
	"github.com/weir-dev/weir/pkg/limiter"
)

// These are of the promises that sidecars are asked for while some are absent.
const (
	// PromiseTime is how far ahead sidecars promise to begin no window by themselves, and
	// PromiseInterval how often. One that hears nothing more of its leader is kept from its
	// share by that, and one that is not heard for the difference lacks it.
	PromiseTime     = 5 * limiter.Second
	PromiseInterval = 2 * time.Second
)

// promises are those of sidecars that begin no window by themselves for a while. They are
// asked for while some are absent, and of a namespace until all have settled.
type promises struct {
	of      map[string]*holderPromise  // by pod UID
	rounds  []round                    // that are not over, in order
	settled map[string]limiter.Instant // by namespace, where nobody is absent any more
}

// A holderPromise is that of the sidecar of a pod.
type holderPromise struct {
	nonce string // of the process
	at    limiter.Instant
	until limiter.Instant // the promise lapsed then, if that is over
	// shares are the largest ones that the sidecar may use when it lapses: each the least
	// number of holders that it came with or was sent since.
	shares map[types.NamespacedName]int64
}

// A round is all that is promised until one instant.
type round struct {
	until limiter.Instant
	pods  map[string]*holderPromise // by pod UID
}

func newPromises() promises {
	return promises{of: map[string]*holderPromise{}, settled: map[string]limiter.Instant{}}
}

// over reports whether a promise is over that was not renewed.
func (p *promises) over(now limiter.Instant) bool {
	return len(p.rounds) > 0 && p.rounds[0].until <= now
}

// extend has promises be asked for until the instant.
func (p *promises) extend(namespace string, until limiter.Instant) {
	p.settled[namespace] = max(p.settled[namespace], until)
}

// move has a pod's promise be one of the round, nil for none.
func (p *promises) move(podUID string, of *holderPromise, to *round) {
	for i := range p.rounds {
		delete(p.rounds[i].pods, podUID)
	}
	if of.until = limiter.MaxInstant; to != nil {
		of.until, to.pods[podUID] = to.until, of
	}
}

// Promise notes what the sidecar of a pod promised, which came with the shares that it had. It
// reports whether it counts: when the leader asked for it, it is not over, and no window was
// begun that the leader's clock has not reached.
func (r *Tracker) Promise(id podauth.Identity, nonce string, had map[types.NamespacedName]int64, begun, until limiter.Instant) bool {
	if r.first {
		return true
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	now := r.clock()
	r.lapse(now)
	var to *round
	for i := range r.promises.rounds {
		if of := &r.promises.rounds[i]; of.until == until {
			to = of
		}
	}
	if to == nil || begun > now {
		return false
	}
	of := r.promises.of[id.PodUID]
	switch {
	case of == nil:
		of = &holderPromise{nonce: nonce, at: now, shares: map[types.NamespacedName]int64{}}
		if _, before := r.brought[id.PodUID]; !before {
			maps.Copy(of.shares, had)
		}
		r.promises.of[id.PodUID] = of
	case of.until <= now:
		of.nonce, of.at = nonce, now
		r.again(of, now)
	case nonce != of.nonce && of.until == limiter.MaxInstant:
		of.nonce, of.at = nonce, now // the one before left and had begun nothing
	case nonce != of.nonce || begun > of.at:
		return false // the promise of the process before is not over, or was not kept
	case of.until > until:
		return true // it was overtaken
	}
	r.bring(id, had)
	r.promises.move(id.PodUID, of, to)
	return true
}

// MaySend reports whether the sidecar of the pod may be sent the number of holders: not while
// its promise is over, since it may be on the share that it has.
func (r *Tracker) MaySend(id podauth.Identity, name types.NamespacedName, holders int64) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	of, now := r.promises.of[id.PodUID], r.clock()
	switch {
	case of == nil:
		return true
	case of.until <= now:
		return !r.asks(id.Namespace, now)
	}
	if had := of.shares[name]; had == 0 || holders < had {
		of.shares[name] = holders
	}
	return true
}

// lapse notes that promises are over. The lock is held.
func (r *Tracker) lapse(now limiter.Instant) {
	changed := map[types.NamespacedName]struct{}{}
	for r.promises.over(now) {
		for _, of := range r.promises.rounds[0].pods {
			for name, n := range of.shares {
				if c := r.of(name); of.until <= c.Until {
					c.Lapse = entered(c.Lapse, n, of.until)
					changed[name] = struct{}{}
				}
			}
		}
		r.promises.rounds = r.promises.rounds[1:]
	}
	for name := range changed {
		r.know(name)
	}
}

// again notes that a promise which had lapsed holds again. The lock is held.
func (r *Tracker) again(of *holderPromise, now limiter.Instant) {
	for name, n := range of.shares {
		if c := r.of(name); now <= c.Until {
			c.Again = entered(c.Again, n, now)
			r.know(name)
		}
	}
}

// Leave notes that a sidecar left in order, or is gone: it begins no window any more.
func (r *Tracker) Leave(podUID string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.release(podUID)
}

// release is Leave; the lock is held.
func (r *Tracker) release(podUID string) {
	of := r.promises.of[podUID]
	if of == nil {
		return
	}
	now := r.clock()
	r.lapse(now)
	if of.until <= now {
		r.again(of, now)
	}
	r.promises.move(podUID, of, nil)
}

// asks reports whether sidecars of the namespace are asked to promise. The lock is held.
func (r *Tracker) asks(namespace string, now limiter.Instant) bool {
	return !r.first && (len(r.awaited[namespace]) > 0 || now <= r.promises.settled[namespace])
}

// Asking is asks, now.
func (r *Tracker) Asking(namespace string) bool {
	r.mu.RLock()
	defer r.mu.RUnlock()
	return r.asks(namespace, r.clock())
}

// Ask returns what sidecars of the namespace are asked for, nil for nothing: the same for all
// that are asked at once.
func (r *Tracker) Ask(namespace string) *fleetpb.ToHolder {
	r.mu.Lock()
	defer r.mu.Unlock()
	now := r.clock()
	if !r.asks(namespace, now) {
		return nil
	}
	until := now.Add(PromiseTime)
	if n := len(r.promises.rounds); n > 0 && until.Sub(r.promises.rounds[n-1].until) < limiter.Micros(PromiseInterval/time.Microsecond)/2 {
		until = r.promises.rounds[n-1].until
	} else {
		r.promises.rounds = append(r.promises.rounds, round{until, map[string]*holderPromise{}})
	}
	return Request(now, until)
}

// Request is what has a sidecar promise, by a clock that shows now, to begin no window by itself that
// begins before the instant until.
func Request(now, until limiter.Instant) *fleetpb.ToHolder {
	return &fleetpb.ToHolder{Message: &fleetpb.ToHolder_Promise{
		Promise: &fleetpb.PromiseRequest{NowMicros: int64(now), UntilMicros: int64(until)},
	}}
}

// Divisor returns the number that is sent to n holders of the policy, so that their shares and
// those that are in use elsewhere are together not more than the limit; 0 for nothing. away are
// the numbers, by pod UID, that were sent to holders which are connected and have not promised.
func (r *Tracker) Divisor(name types.NamespacedName, n int64, away map[string]int64) int64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	free := big.NewRat(1, 1)
	brought := r.broughtBack(name)
	if brought != nil && brought.Cmp(free) < 0 {
		free = brought
	}
	inUse := map[int64]int64{} // how many holders have each number: most have one of a few
	for uid, of := range away {
		_, lost := r.lost[uid]
		if _, again := r.brought[uid]; of > 0 && !lost && (again || brought == nil) {
			inUse[of]++
		}
	}
	for _, l := range r.lost {
		if of := l.holders[name]; of > 0 {
			inUse[of]++
		}
	}
	for of, holders := range inUse {
		free.Sub(free, big.NewRat(holders, of))
	}
	if free.Sign() <= 0 || n == 0 {
		return 0
	}
	// ceil(n / free)
	num, den := new(big.Int).Mul(big.NewInt(n), free.Denom()), free.Num()
	quotient, rest := num.QuoRem(num, den, new(big.Int))
	if rest.Sign() > 0 {
		quotient.Add(quotient, big.NewInt(1))
	}
	if !quotient.IsInt64() {
		return 0
	}
	return quotient.Int64()
}

// broughtBack returns which part of the limit holders of the policy have brought back, nil
// when nobody is absent who may have another part. The lock is held.
func (r *Tracker) broughtBack(name types.NamespacedName) *big.Rat {
	c := r.policies[name]
	switch {
	case r.first, c == nil && len(r.awaited[name.Namespace]) == 0, c != nil && c.Until != limiter.MaxInstant:
		return nil
	}
	brought := new(big.Rat)
	if c != nil {
		for _, s := range c.Back {
			brought.Add(brought, big.NewRat(int64(len(s.At)), s.Of))
		}
	}
	return brought
}
