package coordinator

import (
	"slices"

	"k8s.io/apimachinery/pkg/types"

	"github.com/weir-dev/weir/pkg/limiter"
	"github.com/weir-dev/weir/pkg/store"
)

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
			c.Back = entered(c.Back, of, now)
			r.know(name)
		}
	}
}

// of returns what is known of the policy. The lock is held.
func (r *returns) of(name types.NamespacedName) *comeback {
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
func (r *returns) know(name types.NamespacedName) {
	c := r.policies[name]
	own := c.Absence
	// Callers that were given these read no more of a list than there was.
	own.Back, own.Lapse, own.Again = slices.Clone(c.Back), slices.Clone(c.Lapse), slices.Clone(c.Again)
	c.known = append(slices.Clone(r.before.of(name)), own)
}

// complete notes that no holder of the policy is absent any more since the instant. The
// lock is held.
func (r *returns) complete(name types.NamespacedName, since limiter.Instant) {
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
