package absence

import (
	"maps"
	"slices"
	"sync"

	"k8s.io/apimachinery/pkg/types"

	"github.com/weir-dev/weir/internal/controlplane/coordinator/podauth"
	"github.com/weir-dev/weir/pkg/limiter"
	"github.com/weir-dev/weir/pkg/policy"
	"github.com/weir-dev/weir/pkg/store"
)

// A Tracker knows which sidecars of earlier leaders may still be on their local shares, and
// how large these are. A sidecar says, as it connects, which share of each policy it had: one
// part in the number of holders that was sent to it. This leader grants that part of windows
// which the sidecar promises not to begin by itself. A share that no sidecar brought back
// may be in use, until all pods are back or gone that were there when the term began. The
// shares of all sidecars are together never more than the limit.
type Tracker struct {
	clock func() limiter.Instant
	from  limiter.Instant // when the term began
	first bool            // nobody led before

	mu       sync.RWMutex
	awaited  map[string]map[string]podauth.Identity    // by namespace and pod UID
	emptied  map[string]limiter.Instant                // by namespace: when nobody was awaited any more
	began    limiter.Instant                           // emptied of all others
	brought  map[string]map[types.NamespacedName]int64 // by pod UID: shares not entered yet
	lost     map[string]lostHolder                     // by pod UID
	policies map[types.NamespacedName]*comeback
	created  map[store.Scope]struct{} // limits that are younger than the term
	before   *Inheritance
	promises promises
}

// A lostHolder is a sidecar whose stream broke in this term.
type lostHolder struct {
	namespace string
	holders   map[types.NamespacedName]int64
}

// New returns what is known as a term begins: nobody is back. The store and the
// journals know that the term may not grant from windows that began before.
func New(clock func() limiter.Instant, first bool, before *Inheritance) *Tracker {
	return &Tracker{
		clock: clock, from: clock(), first: first, before: before,
		awaited: map[string]map[string]podauth.Identity{}, emptied: map[string]limiter.Instant{},
		brought: map[string]map[types.NamespacedName]int64{}, lost: map[string]lostHolder{},
		policies: map[types.NamespacedName]*comeback{}, created: map[store.Scope]struct{}{},
		promises: newPromises(),
	}
}

// Await makes the sidecars of the pods awaited. It is called once, before anybody is served.
func (r *Tracker) Await(pods []podauth.Identity) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.began = r.clock()
	for _, id := range pods {
		in := r.awaited[id.Namespace]
		if in == nil {
			in = map[string]podauth.Identity{}
			r.awaited[id.Namespace] = in
		}
		in[id.PodUID] = id
	}
}

// Arrive notes the return of a sidecar that promises nothing. Its stream is up, so it is
// assumed to begin no window by itself any more. had are the shares that it came with.
func (r *Tracker) Arrive(id podauth.Identity, had map[types.NamespacedName]int64) {
	if r.first {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.bring(id, had)
}

// bring notes with which shares a sidecar is back. The lock is held.
func (r *Tracker) bring(id podauth.Identity, had map[types.NamespacedName]int64) {
	delete(r.lost, id.PodUID)
	if _, again := r.brought[id.PodUID]; again {
		return // what it comes with now, it was sent in this term
	}
	r.brought[id.PodUID] = maps.Clone(had)
	r.drop(id)
}

// drop stops awaiting a pod. The lock is held.
func (r *Tracker) drop(id podauth.Identity) {
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

// Absent returns the pods of the namespace that are awaited.
func (r *Tracker) Absent(namespace string) []podauth.Identity {
	r.mu.RLock()
	defer r.mu.RUnlock()
	return slices.Collect(maps.Values(r.awaited[namespace]))
}

// Settle notes which pods are there, of those that are awaited or were lost, and that none
// that is awaited holds a share of policies for which held is false.
func (r *Tracker) Settle(namespace string, there map[string]struct{}, held func(types.NamespacedName) bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for uid, l := range r.lost {
		if _, ok := there[uid]; l.namespace == namespace && !ok {
			delete(r.lost, uid)
			r.release(uid)
		}
	}
	for uid, id := range r.awaited[namespace] {
		if _, ok := there[uid]; !ok {
			r.drop(id)
		}
	}
	for name, c := range r.policies {
		if name.Namespace != namespace || c.Whole > 0 || c.Until != limiter.MaxInstant {
			continue
		}
		if !held(name) {
			r.complete(name, r.clock())
		}
	}
}

// Lose notes that the stream of a sidecar broke. The numbers of holders are those that it was
// sent.
func (r *Tracker) Lose(id podauth.Identity, holders map[types.NamespacedName]int64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.lost[id.PodUID] = lostHolder{namespace: id.Namespace, holders: holders}
}

// Namespaces returns those in which a pod is awaited or was lost.
func (r *Tracker) Namespaces() []string {
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

// settling is the longest time that sidecars go on to promise when all are back: the longest
// window of a policy, so that each limit has begun one in which nobody is absent. A leader
// that all come back to is busiest as that begins.
const settling = 60 * limiter.Second

// A comeback is what is known of the holders of one policy.
type comeback struct {
	limiter.Absence
	known []limiter.Absence // as it is given away, with those of earlier terms
	span  limiter.Micros    // the longest window
}

// entered returns the shares with one more, from the instant on, which is not before the others.
func entered(all []limiter.Shares, of int64, at limiter.Instant) []limiter.Shares {
	for i := range all {
		if all[i].Of == of {
			all[i].At = append(all[i].At, at)
			return all
		}
	}
	return append(all, limiter.Shares{Of: of, At: []limiter.Instant{at}})
}

// Enter enters the shares that the pod's sidecar came with, of policies that it is served by.
func (r *Tracker) Enter(podUID string, served map[types.NamespacedName]*policy.Policy) {
	if r.first {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	now, had := r.clock(), r.brought[podUID]
	for name, p := range served {
		c := r.of(name)
		for i := range p.Limits {
			for _, rate := range p.Limits[i].Params(p).Rates {
				c.span = max(c.span, rate.Window)
			}
		}
		if of, ok := had[name]; ok {
			delete(had, name)
			c.Back = entered(c.Back, of, now)
			r.know(name)
		}
	}
}

// of returns what is known of the policy. The lock is held.
func (r *Tracker) of(name types.NamespacedName) *comeback {
	c := r.policies[name]
	if c == nil {
		c = &comeback{Absence: limiter.Absence{From: r.from, Until: limiter.MaxInstant}}
		r.policies[name] = c
		emptied, waited := r.emptied[name.Namespace]
		switch {
		case waited:
			r.complete(name, emptied)
		case len(r.awaited[name.Namespace]) == 0:
			c.Until = r.began
		}
		r.know(name)
	}
	return c
}

// know renews what is given away. The lock is held.
func (r *Tracker) know(name types.NamespacedName) {
	c := r.policies[name]
	own := c.Absence
	// Callers that were given these read no more of a list than there was.
	own.Back, own.Lapse, own.Again = slices.Clone(c.Back), slices.Clone(c.Lapse), slices.Clone(c.Again)
	c.known = append(slices.Clone(r.before.of(name)), own)
}

// complete notes that no holder of the policy is absent any more since the instant. The
// lock is held.
func (r *Tracker) complete(name types.NamespacedName, since limiter.Instant) {
	c := r.policies[name]
	if c.Whole > 0 || c.Until != limiter.MaxInstant {
		return
	}
	c.Whole, c.Until = since, since.Add(settling)
	if c.span > 0 {
		c.Until = since.Add(min(c.span, settling))
	}
	r.promises.extend(name.Namespace, c.Until)
	r.know(name)
}

// Create notes that a limit was never in force before.
func (r *Tracker) Create(limit store.Scope) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.created[limit] = struct{}{}
}

// Absences is memory.Options.Absences.
func (r *Tracker) Absences(limit store.Scope) []limiter.Absence {
	if r.first {
		return nil
	}
	name := types.NamespacedName{Namespace: limit.Namespace, Name: limit.Policy}
	r.mu.RLock()
	_, created := r.created[limit]
	c := r.policies[name]
	if c != nil && !created && !r.promises.over(r.clock()) {
		defer r.mu.RUnlock()
		return c.known
	}
	r.mu.RUnlock()
	if created {
		return nil
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.lapse(r.clock())
	return r.of(name).known
}
