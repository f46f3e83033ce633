package coordinator

import (
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/weir-dev/weir/internal/controlplane/audit"
	"github.com/weir-dev/weir/pkg/limiter"
	"github.com/weir-dev/weir/pkg/policy"
	"github.com/weir-dev/weir/pkg/store"
)

// accountKept is how long the figures of a policy without holders are kept.
const accountKept = time.Hour

// accounting is the audits of all policies.
type accounting struct {
	since time.Time // when every holder is known
	// hasPredecessor says that another leader measured before: what it did not hand on is not known.
	hasPredecessor bool
	// remembered returns what is known of the memory of a store; nil when nothing is.
	remembered func(of policy.Store) []audit.Unbroken

	mu          sync.Mutex
	byName      map[types.NamespacedName]*account
	created     map[limitName]struct{} // limits that no earlier leader can have measured
	boundLimits *boundLimits
}

// An account is the audit of one policy.
type account struct {
	limits  map[string]*audit.Limit
	store   policy.Store
	shown   map[string]audit.Verdict // as last reported
	holders map[audit.Holder]struct{}
	idle    time.Time // since when it has no holders
}

// newAccounting returns the audits of a term. Holders come back to a new leader until
// since; what is counted of windows before is not all there is.
func newAccounting(since time.Time) *accounting {
	return &accounting{since: since, byName: map[types.NamespacedName]*account{}, created: map[limitName]struct{}{}, boundLimits: newBoundLimits()}
}

// create notes that a limit was never in force before.
func (b *accounting) create(limit store.Scope) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.created[limitName{policy: types.NamespacedName{Namespace: limit.Namespace, Name: limit.Policy}, limit: limit.Limit}] = struct{}{}
}

// inherits reports whether another leader may have measured the limit. Its sidecars may come
// back to this one at any time, so that does not depend on when they do.
func (b *accounting) inherits(limit limitName) bool {
	_, created := b.created[limit]
	return b.hasPredecessor && !created
}

// enforce makes h account for what it is served by. Until h has read that, it goes on
// enforcing the rest of what it enforced before, and nobody counts that rest. When it was
// served by a part before, nothing that it reported of other policies is accounted for. Of
// policies that are the same as before, nil for none, it accounts already.
func (b *accounting) enforce(h audit.Holder, c, before *config, part bool) {
	step := c.from(before)
	b.mu.Lock()
	defer b.mu.Unlock()
	now := time.Now()
	for _, name := range step.names {
		p := c.policy(name)
		if p == nil {
			b.each(h, name, func(l *audit.Limit) { l.Lose(h, now) })
			continue
		}
		entry := b.byName[name]
		if entry == nil {
			entry = &account{
				limits:  map[string]*audit.Limit{},
				shown:   map[string]audit.Verdict{},
				holders: map[audit.Holder]struct{}{},
			}
			b.byName[name] = entry
		}
		entry.adopt(p, now, b.since, b.inherits)
		b.boundLimits.adopt(p, now)
		entry.holders[h] = struct{}{}
		for _, l := range entry.limits {
			if part && !before.has(name) {
				l.Unplace(now)
			}
			l.Join(h, now)
		}
	}
}

// adopt takes over the limits of a policy; inherits reports whether another leader may have
// measured one of them under this generation.
func (b *account) adopt(p *policy.Policy, now, since time.Time, inherits func(limitName) bool) {
	b.store = p.Store
	named := make(map[string]struct{}, len(p.Limits))
	for _, l := range p.Limits {
		named[l.Name] = struct{}{}
		c := promised(p, &l)
		if known := b.limits[l.Name]; known != nil {
			known.Reconfigure(c, now)
			continue
		}
		b.limits[l.Name] = audit.New(ReportInterval, c, latest(now, since))
		if inherits(limitName{policy: types.NamespacedName{Namespace: p.Namespace, Name: p.Name}, limit: l.Name}) {
			b.limits[l.Name].Inherit()
		}
		for h := range b.holders {
			b.limits[l.Name].Join(h, now)
		}
	}
	for name := range b.limits {
		if _, ok := named[name]; !ok {
			delete(b.limits, name)
			delete(b.shown, name)
		}
	}
}

// promised returns what the limit, which is one of p, promises.
func promised(p *policy.Policy, l *policy.Limit) audit.Config {
	c := audit.Config{
		Generation: p.Generation, Since: p.Since,
		Promise: bounds(l.Params(p)), Keyed: l.Key != nil, Carry: l.Carry(p), Unsettled: !l.Settled(), Resume: resumes(p, l), Reset: p.ResetAt, Clusters: l.Clusters,
	}
	for value, params := range l.Overridden(p) {
		if c.Overrides == nil {
			c.Overrides = make(map[string]audit.Promise)
		}
		c.Overrides[store.HashValue(value)] = bounds(params)
	}
	return c
}

// resumes reports whether the limit goes on when its store loses its memory. The
// controller's own never does.
func resumes(p *policy.Policy, l *policy.Limit) bool {
	return l.Retention.Resume && l.Budget == nil && p.Store.Type != policy.ControllerStore
}

func bounds(p limiter.Params) audit.Promise {
	out := audit.Promise{Rates: p.Rates}
	for _, r := range p.Rates {
		out.Most = append(out.Most, p.MostPerWindow(r))
	}
	return out
}

func latest(t, u time.Time) time.Time {
	if u.After(t) {
		return u
	}
	return t
}

// each calls f for every limit of the policy and takes h off its holders.
func (b *accounting) each(h audit.Holder, name types.NamespacedName, f func(*audit.Limit)) {
	entry := b.byName[name]
	if entry == nil {
		return
	}
	delete(entry.holders, h)
	if len(entry.holders) == 0 {
		entry.idle = time.Now()
	}
	for _, l := range entry.limits {
		f(l)
	}
}

// leave takes off a holder that stopped in good order.
func (b *accounting) leave(h audit.Holder, policies []types.NamespacedName) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, name := range policies {
		b.each(h, name, func(l *audit.Limit) { l.Leave(h) })
	}
}

// lose takes off a holder that vanished.
func (b *accounting) lose(h audit.Holder, policies []types.NamespacedName) {
	b.mu.Lock()
	defer b.mu.Unlock()
	now := time.Now()
	for _, name := range policies {
		b.each(h, name, func(l *audit.Limit) { l.Lose(h, now) })
	}
}

// bury takes it that the processes of pods that are gone do not live on.
func (b *accounting) bury(name types.NamespacedName, podUIDs []string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	entry := b.byName[name]
	if entry == nil {
		return
	}
	now := time.Now()
	for _, l := range entry.limits {
		for _, uid := range podUIDs {
			l.Bury(uid, now)
		}
	}
}

// report enters a part of what a holder counted of the policies it enforces, and adds the
// limits to those in the parts before. When no more parts come, the holder has nothing to
// report of a limit that is in none.
func (b *accounting) report(h audit.Holder, policies []types.NamespacedName, reports map[limitName]audit.Report, spoken map[limitName]struct{}, more bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	now := time.Now()
	for _, name := range policies {
		entry := b.byName[name]
		if entry == nil {
			continue
		}
		for limit, l := range entry.limits {
			of := limitName{policy: name, limit: limit}
			_, earlier := spoken[of]
			switch r, ok := reports[of]; {
			case ok:
				l.Report(h, r, now)
				if more {
					spoken[of] = struct{}{}
				}
			case !more && !earlier:
				l.Pass(h, now)
			}
		}
	}
}

// doubt marks what the limits admitted until now as unknown: some of what a holder counted
// of them could not be read.
func (b *accounting) doubt(limits []limitName) {
	if len(limits) == 0 {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	now := time.Now()
	for _, name := range limits {
		if entry := b.byName[name.policy]; entry != nil && entry.limits[name.limit] != nil {
			entry.limits[name.limit].Unplace(now)
		}
	}
}

// reply enters a holder's answer to a query.
func (b *accounting) reply(h audit.Holder, q question, keys []audit.KeyCount, unknown bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if entry := b.byName[q.limit.policy]; entry != nil && entry.limits[q.limit.limit] != nil {
		entry.limits[q.limit.limit].Reply(h, q.id, keys, unknown)
	}
}

// A question is an audit query of one limit.
type question struct {
	limit limitName
	id    uint64
}

// An inquiry is a query that has to be sent.
type inquiry struct {
	limit limitName
	audit.Query
}

// advance measures what can be measured. It returns the queries to send, and the policies
// with a changed verdict.
func (b *accounting) advance(now time.Time) (ask []inquiry, changed []types.NamespacedName) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.boundLimits.sweep(now)
	for name, entry := range b.byName {
		var unbroken []audit.Unbroken
		if b.remembered != nil {
			unbroken = b.remembered(entry.store)
		}
		if len(entry.holders) == 0 && now.Sub(entry.idle) > accountKept {
			delete(b.byName, name)
			b.boundLimits.forget(name)
			continue
		}
		for limit, l := range entry.limits {
			l.Remember(unbroken)
			for _, q := range l.Advance(now) {
				ask = append(ask, inquiry{limit: limitName{policy: name, limit: limit}, Query: q})
			}
			verdict := l.Figures(now).Verdict
			if shown, ok := entry.shown[limit]; !ok || shown != verdict {
				entry.shown[limit] = verdict
				changed = append(changed, name)
			}
		}
	}
	return ask, changed
}

// figures returns those of each limit of the policy.
func (b *accounting) figures(name types.NamespacedName) map[string]audit.Figures {
	b.mu.Lock()
	defer b.mu.Unlock()
	entry := b.byName[name]
	if entry == nil {
		return nil
	}
	now := time.Now()
	out := make(map[string]audit.Figures, len(entry.limits))
	for limit, l := range entry.limits {
		out[limit] = l.Figures(now)
	}
	return out
}
