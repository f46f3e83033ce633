package coordinator

import (
	"maps"
	"math/big"
	"slices"
	"sync"

	"k8s.io/apimachinery/pkg/types"

	"github.com/weir-dev/weir/pkg/limiter"
	"github.com/weir-dev/weir/pkg/store"
)

// returns knows which sidecars of earlier leaders may still be on their local shares, and
// how large these are. A sidecar says, as it connects, which share of each policy it had: one
// part in the number of holders that was sent to it. From then on this leader grants that part.
// What no sidecar brought back may be in use, until all pods are back or gone that were there
// when the term began. The shares of all sidecars are together never more than the limit.
type returns struct {
	clock func() limiter.Instant
	from  limiter.Instant // when the term began
	first bool            // nobody led before

	mu       sync.RWMutex
	awaited  map[string]map[string]Identity            // by namespace and pod UID
	emptied  map[string]limiter.Instant                // by namespace: when nobody was awaited any more
	began    limiter.Instant                           // emptied of all others
	brought  map[string]map[types.NamespacedName]int64 // by pod UID: shares not entered yet
	lost     map[string]lostHolder                     // by pod UID
	policies map[types.NamespacedName]*comeback
	created  map[store.Scope]struct{} // limits that are younger than the term
	before   *inheritance
}

// A comeback is what is known of the holders of one policy.
type comeback struct {
	limiter.Absence
	known []limiter.Absence // as it is given away, with those of earlier terms
	span  limiter.Micros    // the longest window
}

// A lostHolder is a sidecar whose stream broke in this term.
type lostHolder struct {
	namespace string
	told      map[types.NamespacedName]int64
}

// newReturns returns what is known as a term begins: nobody is back. That the term may not
// grant of windows that began before, the store and the journals know.
func newReturns(clock func() limiter.Instant, first bool, before *inheritance) *returns {
	began := clock()
	return &returns{
		clock: clock, from: began, first: first, began: began, before: before,
		awaited: map[string]map[string]Identity{}, emptied: map[string]limiter.Instant{},
		brought: map[string]map[types.NamespacedName]int64{}, lost: map[string]lostHolder{},
		policies: map[types.NamespacedName]*comeback{}, created: map[store.Scope]struct{}{},
	}
}

// await has the sidecars of the pods be awaited: it is called once, before anybody is served.
func (r *returns) await(pods []Identity) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.began = r.clock()
	for _, id := range pods {
		in := r.awaited[id.Namespace]
		if in == nil {
			in = map[string]Identity{}
			r.awaited[id.Namespace] = in
		}
		in[id.PodUID] = id
	}
}

// arrive notes that a sidecar is back: its stream is up, so it begins no window by itself
// any more. had are the shares that it came with.
func (r *returns) arrive(id Identity, had map[types.NamespacedName]int64) {
	if r.first {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.lost, id.PodUID)
	if _, again := r.brought[id.PodUID]; again {
		return // what it comes with now, it was sent in this term
	}
	r.brought[id.PodUID] = had
	r.drop(id)
}

// drop awaits a pod no more. The lock is held.
func (r *returns) drop(id Identity) {
	in := r.awaited[id.Namespace]
	if _, ok := in[id.PodUID]; !ok {
		return
	}
	if delete(in, id.PodUID); len(in) > 0 {
		return
	}
	now := r.clock()
	delete(r.awaited, id.Namespace)
	r.emptied[id.Namespace] = now
	for name := range r.policies {
		if name.Namespace == id.Namespace {
			r.complete(name, now)
		}
	}
}

// enter enters the shares that the pod's sidecar came with, of policies that it is served by.
func (r *returns) enter(podUID string, served *config) {
	if r.first {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	now, had := r.clock(), r.brought[podUID]
	for name, p := range served.policies {
		c := r.of(name)
		for i := range p.Limits {
			c.span = max(c.span, longest(p.Limits[i].Params(p)).Window)
		}
		if of, ok := had[name]; ok {
			delete(had, name)
			c.enter(of, now)
			r.know(name)
		}
	}
}

// enter enters a share.
func (c *comeback) enter(of int64, now limiter.Instant) {
	for i := range c.Back {
		if c.Back[i].Of == of {
			c.Back[i].At = append(c.Back[i].At, now)
			return
		}
	}
	c.Back = append(c.Back, limiter.Shares{Of: of, At: []limiter.Instant{now}})
}

// of returns what is known of the policy. The lock is held.
func (r *returns) of(name types.NamespacedName) *comeback {
	c := r.policies[name]
	if c == nil {
		c = &comeback{Absence: limiter.Absence{From: r.from, Until: r.until(name.Namespace)}}
		r.policies[name] = c
		r.know(name)
	}
	return c
}

// until returns when nobody of the namespace was absent any more. The lock is held.
func (r *returns) until(namespace string) limiter.Instant {
	if len(r.awaited[namespace]) > 0 {
		return limiter.MaxInstant
	}
	if at, ok := r.emptied[namespace]; ok {
		return at
	}
	return r.began
}

// know renews what is given away. The lock is held.
func (r *returns) know(name types.NamespacedName) {
	c := r.policies[name]
	own := c.Absence
	own.Back = slices.Clone(c.Back) // those who were given it read no more of a list than there was
	c.known = append(slices.Clone(r.before.of(name)), own)
}

// complete notes that no holder of the policy is absent any more. The lock is held.
func (r *returns) complete(name types.NamespacedName, now limiter.Instant) {
	if c := r.policies[name]; c.Until == limiter.MaxInstant {
		c.Until = now
		r.know(name)
	}
}

// create notes that a limit was never in force before.
func (r *returns) create(limit store.Scope) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.created[limit] = struct{}{}
}

// absences is memory.Options.Absences.
func (r *returns) absences(limit store.Scope) []limiter.Absence {
	if r.first {
		return nil
	}
	name := types.NamespacedName{Namespace: limit.Namespace, Name: limit.Policy}
	r.mu.RLock()
	_, created := r.created[limit]
	c := r.policies[name]
	if c != nil && !created {
		defer r.mu.RUnlock()
		return c.known
	}
	r.mu.RUnlock()
	if created {
		return nil
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.of(name).known
}

// absent returns the pods of the namespace that are awaited.
func (r *returns) absent(namespace string) []Identity {
	r.mu.RLock()
	defer r.mu.RUnlock()
	return slices.Collect(maps.Values(r.awaited[namespace]))
}

// settle notes which pods are there, of those that are awaited or were lost, and that none
// that is awaited holds a share of policies for which held is false.
func (r *returns) settle(namespace string, there map[string]struct{}, held func(types.NamespacedName) bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for uid, l := range r.lost {
		if _, ok := there[uid]; l.namespace == namespace && !ok {
			delete(r.lost, uid)
		}
	}
	for uid, id := range r.awaited[namespace] {
		if _, ok := there[uid]; !ok {
			r.drop(id)
		}
	}
	for name, c := range r.policies {
		if name.Namespace != namespace || c.Until != limiter.MaxInstant {
			continue
		}
		if !held(name) {
			r.complete(name, r.clock())
		}
	}
}

// lose notes that the stream of a sidecar broke to which these numbers of holders were sent.
func (r *returns) lose(id Identity, told map[types.NamespacedName]int64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.lost[id.PodUID] = lostHolder{namespace: id.Namespace, told: told}
}

// namespaces returns those in which a pod is awaited or was lost.
func (r *returns) namespaces() []string {
	r.mu.RLock()
	defer r.mu.RUnlock()
	in := map[string]struct{}{}
	for namespace := range r.awaited {
		in[namespace] = struct{}{}
	}
	for _, l := range r.lost {
		in[l.namespace] = struct{}{}
	}
	return slices.Collect(maps.Keys(in))
}

// divisor returns the number that is sent to n holders of the policy, so that their shares and
// those that are in use elsewhere are together not more than the limit; 0 for nothing.
func (r *returns) divisor(name types.NamespacedName, n int64) int64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	free := big.NewRat(1, 1)
	if c := r.policies[name]; !r.first && (c == nil && r.until(name.Namespace) == limiter.MaxInstant || c != nil && c.Until == limiter.MaxInstant) {
		brought := new(big.Rat)
		if c != nil {
			for _, s := range c.Back {
				brought.Add(brought, big.NewRat(int64(len(s.At)), s.Of))
			}
		}
		if brought.Cmp(free) < 0 {
			free = brought
		}
	}
	for _, l := range r.lost {
		if of := l.told[name]; of > 0 {
			free.Sub(free, big.NewRat(1, of))
		}
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
