package coordinator

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/weir-dev/weir/internal/controlplane/audit"
	"github.com/weir-dev/weir/internal/controlplane/budget"
	"github.com/weir-dev/weir/pkg/federation/ledger"
	"github.com/weir-dev/weir/pkg/limiter"
	"github.com/weir-dev/weir/pkg/policy"
	"github.com/weir-dev/weir/pkg/store"
)

// Budgets hand on this cluster's parts of the budgets that it shares with others, for
// one term; see internal/controlplane/region. They are safe for concurrent use.
type Budgets interface {
	// Run works until ctx is done, then gives back what was not handed on, which is
	// bounded in time.
	Run(ctx context.Context)
	// Apply decides a command of a limit of the namespace that draws from the budget, and
	// may wait for another cluster.
	Apply(ctx context.Context, namespace string, of policy.BudgetRef, key store.Key, p limiter.Params, c limiter.Command) (limiter.Result, error)
	// Observe returns what is known of the budget of a FederatedBudget.
	Observe(namespace, name string) budget.Observation
}

// noBudgets are those of a cluster that shares none.
type noBudgets struct{}

// Run implements Budgets.
func (noBudgets) Run(context.Context) {}

// Apply implements Budgets.
func (noBudgets) Apply(
	_ context.Context, namespace string, of policy.BudgetRef, _ store.Key, _ limiter.Params, _ limiter.Command,
) (limiter.Result, error) {
	return limiter.Result{}, &store.UnavailableError{
		Store: fmt.Sprintf("budget %q", of.ID),
		Cause: fmt.Errorf("this controller takes no part in FederatedBudget %s/%s", namespace, of.Name),
	}
}

// Observe implements Budgets.
func (noBudgets) Observe(string, string) budget.Observation { return budget.Observation{} }

// A limit whose scope is edited from Fleet to Federated, or back, has two places that
// grant for it: the term's store and a budget. Neither knows what the other granted. So that
// no window admits twice, the store is asked first in either scope, and says which contract
// is in force. For a limit that draws from a budget it is asked with parameters of their
// own, the sentinel: windows as long as the budget's, and a limit that never matters. To the
// store, an edit of the scope is then the same as an edit of rates:
//
//	the store has           the limit draws from   in force
//	nothing                 a budget               the budget
//	windows of the store    a budget               the store's windows until the last of them ends
//	the sentinel's windows  a budget               the budget
//	the sentinel's windows  the store              the budget it drew from until the sentinel's window
//	                                               ends; nothing when that is not known
//
// The windows of a budget are those of its coordinator's clock, which may differ from the
// store's: the window that a number names may be open there when it is over here. So that
// no number is served by both, two rules hold, each by its own clock. Nothing is drawn from
// a window of the budget whose number is below that of the store's window, of the same length,
// in which the limit was first seen to draw: all that the store granted before were over then,
// whatever lengths they had. So the instant holds for a budget that is created again with other
// rates, too. The store grants nothing of windows that began before the last one drawn from
// ended. A new leader does not know the latter.
//
// The sentinel is in the ledger that a leader hands over. A crash that loses it loses the
// store's windows as well, which then grant nothing; a limit that draws from a budget goes
// on, for its budget forgets nothing.

// sentinelOffset sets the sentinel's windows apart from any that a policy can name. They end just
// before the store's, so that no window of the store begins while the sentinel is in force.
const sentinelOffset limiter.Micros = 1

// sentinel returns the parameters that the store is asked with when the limit draws from a
// budget.
func sentinel(p limiter.Params) limiter.Params {
	out := limiter.Params{Since: p.Since, Generation: p.Generation}
	for _, r := range p.Rates {
		out.Rates = append(out.Rates, limiter.Rate{Limit: limiter.MaxLimit, Window: r.Window, Offset: sentinelOffset})
	}
	return out
}

// isSentinel reports whether windows in force are the sentinel's, and not of another contract.
func isSentinel(w limiter.Windows) bool {
	return w.N > 0 && !slices.ContainsFunc(w.Slice(), func(o limiter.OpenWindow) bool {
		return o.Offset != sentinelOffset || o.Limit != limiter.MaxLimit
	})
}

// lastEnd returns when the last of the windows ends.
func lastEnd(w limiter.Windows) (end limiter.Instant) {
	for _, o := range w.Slice() {
		end = max(end, o.End())
	}
	return end
}

// decide has the command decided by the contract in force.
func (t *term) decide(ctx context.Context, l *published, key store.Key, p limiter.Params, c limiter.Command) (limiter.Result, error) {
	asked := p
	if l.budget != nil {
		asked = sentinel(p)
	}
	res, err := t.store.Apply(ctx, key, asked, c)
	if err != nil {
		return res, err
	}
	if c.Op == limiter.Return {
		c.Floor = 0
		return t.giveBack(ctx, l, key, p, c, res)
	}
	switch {
	case res.Reason == limiter.StaleGeneration || res.Reason == limiter.ClockBehind:
		return res, nil
	case !isSentinel(res.Windows):
		if last, ok := t.bindings.last(key.Scope); ok && beginBefore(res.Windows, last.until) {
			return refuse(c, res, last.until, func(back limiter.Command) (limiter.Result, error) {
				return t.store.Apply(ctx, key, asked, back)
			})
		}
		t.bindings.end(key.Scope)
		return res, nil
	case res.Reason == limiter.Amnesia && beginBefore(res.Windows, p.Since):
		return res, nil // another store may have granted of this window
	}
	c.Floor = 0 // it is on the store's clock, not on the budget's
	return t.draw(ctx, l, key, p, c, res.Windows, res.Now)
}

// draw asks the budget that the limit draws from or, until the sentinel's window ends, drew
// from.
func (t *term) draw(
	ctx context.Context, l *published, key store.Key, p limiter.Params, c limiter.Command, open limiter.Windows, now limiter.Instant,
) (limiter.Result, error) {
	from := binding{scope: key.Scope, since: now}
	if l.budget != nil {
		from.budget, from.rates, from.fairness = *l.budget, p.Rates, p.Fairness
	} else if last, ok := t.bindings.last(key.Scope); ok {
		from = last
	} else {
		return limiter.Result{Reason: limiter.Exhausted, RetryAfter: lastEnd(open).Sub(now), Now: now}, nil
	}
	res, err := t.budgets.Apply(ctx, key.Scope.Namespace, from.budget, key, from.params(p), c)
	if err != nil || res.Windows.N == 0 {
		return res, err
	}
	if c.Op == limiter.Take {
		from = t.bindings.note(from, res.Windows, lastEnd(open))
	} else if last, ok := t.bindings.last(key.Scope); ok && last.budget == from.budget {
		from.since = last.since
	}
	until := from.early(res.Windows)
	if until == 0 {
		return res, nil
	}
	return refuse(c, res, until, func(back limiter.Command) (limiter.Result, error) {
		return t.budgets.Apply(ctx, key.Scope.Namespace, from.budget, key, from.params(p), back)
	})
}

// beginBefore reports whether one of the windows begins before the instant.
func beginBefore(w limiter.Windows, at limiter.Instant) bool {
	return slices.ContainsFunc(w.Slice(), func(o limiter.OpenWindow) bool { return o.Start() < at })
}

// refuse gives back what res granted, and says that nothing is granted before the instant,
// of the clock of res.
func refuse(c limiter.Command, res limiter.Result, until limiter.Instant, giveBack func(limiter.Command) (limiter.Result, error)) (limiter.Result, error) {
	if c.Op == limiter.Take && res.Granted > 0 {
		back := limiter.Command{Op: limiter.Return, Want: res.Granted, Tenant: c.Tenant, Windows: res.Windows, At: res.Now}
		if _, err := giveBack(back); err != nil {
			return limiter.Result{}, err
		}
	}
	return limiter.Result{Reason: limiter.Exhausted, RetryAfter: until.Sub(res.Now), Now: res.Now}, nil
}

// giveBack returns units to the budget that the limit draws from, unless they may belong to
// the store or to another budget: those of the window in which it began to draw are
// forfeited, and of several rates each has such a window. res is the store's answer.
func (t *term) giveBack(
	ctx context.Context, l *published, key store.Key, p limiter.Params, c limiter.Command, res limiter.Result,
) (limiter.Result, error) {
	from, ok := t.bindings.last(key.Scope)
	if res.Reason != limiter.Forfeited || !ok || l.budget != nil && *l.budget != from.budget || !from.owned(&c.Windows) {
		return res, nil
	}
	return t.budgets.Apply(ctx, key.Scope.Namespace, from.budget, key, from.params(p), c)
}

// A binding is that of a limit to the budget that it draws from.
type binding struct {
	scope    store.Scope
	budget   policy.BudgetRef
	rates    []limiter.Rate
	fairness limiter.Fairness
	first    limiter.Windows // of the budget in which it began to, in windows of these lengths
	since    limiter.Instant // when it began to, by the store's clock: no window that the store granted of was open
	until    limiter.Instant // end of the last window drawn from, by the budget's clock
	ends     limiter.Instant // of the sentinel's window in which it did last
}

// began returns when the store's window of that length began in which the limit began to draw. Windows of
// the budget that began before may have numbers that the store served.
func (d *binding) began(of limiter.OpenWindow) limiter.Instant { return of.WindowAt(d.since).Start() }

// early returns until when nothing is drawn, because the store may have served the number of a window; 0 when
// it served none.
func (d *binding) early(w limiter.Windows) (until limiter.Instant) {
	for _, o := range w.Slice() {
		if began := d.began(o); o.Start() < began {
			until = max(until, began, o.End())
		}
	}
	return until
}

// params returns what the budget hands on by.
func (d *binding) params(p limiter.Params) limiter.Params {
	return limiter.Params{Rates: d.rates, Fairness: d.fairness, Generation: p.Generation}
}

// asBefore reports whether both draw from the same budget in windows of the same lengths.
func (d *binding) asBefore(last *binding) bool {
	return d.budget == last.budget && slices.EqualFunc(d.rates, last.rates, func(a, b limiter.Rate) bool { return a.Window == b.Window })
}

// owned leaves of the windows those whose units are the budget's and no others: they are as long as its
// windows, and began after the one in which the limit began to draw. The others get a number that no
// window has. It reports whether any is left.
func (d *binding) owned(w *limiter.Windows) (some bool) {
	if w.N != d.first.N {
		return false
	}
	for i := range w.Slice() {
		if o, first := &w.Open[i], d.first.Open[i]; o.Window != first.Window || o.Index <= first.Index || o.Start() < d.began(*o) {
			o.Index = noWindow
		} else {
			some = true
		}
	}
	return some
}

// noWindow is the number of no window of a budget.
const noWindow = -1

// longest returns the length of the longest windows.
func (d *binding) longest() limiter.Micros { return limiter.Params{Rates: d.rates}.Longest().Window }

// bindings are those of the limits that drew from budgets in this term.
type bindings struct {
	mu      sync.RWMutex
	byScope map[store.Scope]binding
}

func newBindings() *bindings { return &bindings{byScope: map[store.Scope]binding{}} }

// last returns which budget the limit drew from last, and false when it drew from none
// lately.
func (d *bindings) last(scope store.Scope) (binding, bool) {
	d.mu.RLock()
	defer d.mu.RUnlock()
	last, ok := d.byScope[scope]
	return last, ok
}

// may reports whether a lease of the limit may have to ask a budget.
func (d *bindings) may(l *published) bool {
	_, drew := d.last(l.scope)
	return l.budget != nil || drew
}

// end enters that the store grants for the limit.
func (d *bindings) end(scope store.Scope) {
	if _, drew := d.last(scope); drew { // of most limits never
		d.mu.Lock()
		defer d.mu.Unlock()
		delete(d.byScope, scope)
	}
}

// note enters that a limit drew from those windows of a budget, and returns what is known
// then; the sentinel's window ends then.
func (d *bindings) note(from binding, open limiter.Windows, ends limiter.Instant) binding {
	d.mu.Lock()
	defer d.mu.Unlock()
	last, ok := d.byScope[from.scope]
	from.first, from.ends, from.until = open, ends, last.until
	for _, w := range open.Slice() {
		from.until = max(from.until, w.End())
	}
	if ok && last.budget == from.budget {
		from.since, from.ends = last.since, max(last.ends, ends)
	}
	if ok && from.asBefore(&last) {
		from.first = last.first
	}
	d.byScope[from.scope] = from
	return from
}

// sweep forgets limits that drew in no window that is open or in the one before, of
// which a return may be under way.
func (d *bindings) sweep(now limiter.Instant) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for scope, from := range d.byScope {
		if now >= max(from.ends, from.until).Add(from.longest()) {
			delete(d.byScope, scope)
		}
	}
}

// boundLimits map limits to the budgets that they draw from. The count of a budget is the sum
// over all its limits.
type boundLimits struct {
	byPolicy map[types.NamespacedName]map[string]boundLimit // by name of the limit
	byBudget map[string]map[limitName]struct{}
	// ceased is when a limit last ceased to draw from a budget: some counts of windows that
	// may have begun before are no longer available.
	ceased map[string]time.Time
}

// A boundLimit is the budget that a limit draws from, and since when.
type boundLimit struct {
	budget string
	since  time.Time
}

func newBoundLimits() *boundLimits {
	return &boundLimits{
		byPolicy: map[types.NamespacedName]map[string]boundLimit{},
		byBudget: map[string]map[limitName]struct{}{},
		ceased:   map[string]time.Time{},
	}
}

// adopt takes over which of the policy's limits draw from budgets.
func (s *boundLimits) adopt(p *policy.Policy, now time.Time) {
	name := types.NamespacedName{Namespace: p.Namespace, Name: p.Name}
	before := s.byPolicy[name]
	next := map[string]boundLimit{}
	for _, l := range p.Limits {
		if l.Budget == nil {
			continue
		}
		from, same := before[l.Name]
		if !same || from.budget != l.Budget.ID {
			from = boundLimit{budget: l.Budget.ID, since: now}
			s.link(from.budget, limitName{policy: name, limit: l.Name})
		}
		next[l.Name] = from
	}
	for limit, from := range before {
		if next[limit].budget != from.budget {
			s.unlink(from.budget, limitName{policy: name, limit: limit})
			s.ceased[from.budget] = now
		}
	}
	if delete(s.byPolicy, name); len(next) > 0 {
		s.byPolicy[name] = next
	}
}

// forget drops a policy that nobody enforced for long.
func (s *boundLimits) forget(name types.NamespacedName) {
	for limit, from := range s.byPolicy[name] {
		s.unlink(from.budget, limitName{policy: name, limit: limit})
	}
	delete(s.byPolicy, name)
}

func (s *boundLimits) link(id string, l limitName) {
	if s.byBudget[id] == nil {
		s.byBudget[id] = map[limitName]struct{}{}
	}
	s.byBudget[id][l] = struct{}{}
}

func (s *boundLimits) unlink(id string, l limitName) {
	if delete(s.byBudget[id], l); len(s.byBudget[id]) == 0 {
		delete(s.byBudget, id)
	}
}

// sweep forgets what no window looks back on.
func (s *boundLimits) sweep(now time.Time) {
	for id, at := range s.ceased {
		if now.Sub(at) > 2*time.Duration(limiter.MaxWindow)*time.Microsecond {
			delete(s.ceased, id)
		}
	}
}

// usage is Usage of budget.Counts. A further rate of an object has the limits of the object, in windows
// of its own.
func (b *accounting) usage(id string, w limiter.OpenWindow, before, over time.Time) ledger.Usage {
	b.mu.Lock()
	defer b.mu.Unlock()
	began := before.Add(-time.Duration(w.Window) * time.Microsecond) // at the earliest
	out := ledger.Usage{Index: w.Index, Complete: began.After(b.since) && began.After(b.boundLimits.ceased[policy.ObjectID(id)])}
	for name := range b.boundLimits.byBudget[policy.ObjectID(id)] {
		counted := b.byName[name.policy].limits[name.limit].Usage(w, before, over, b.boundLimits.byPolicy[name.policy][name.limit].since)
		out.Admitted += counted.Admitted
		out.Refused += counted.Refused
		out.Complete = out.Complete && counted.Complete
	}
	return out
}

// values is Values of budget.Counts.
func (b *accounting) values(id string, w limiter.OpenWindow, before, over time.Time, wanted []string) audit.ValueUsage {
	b.mu.Lock()
	defer b.mu.Unlock()
	began := before.Add(-time.Duration(w.Window) * time.Microsecond) // at the earliest
	out := audit.ValueUsage{Usage: audit.Usage{Complete: began.After(b.since) && began.After(b.boundLimits.ceased[policy.ObjectID(id)])}}
	for name := range b.boundLimits.byBudget[policy.ObjectID(id)] {
		limit := b.byName[name.policy].limits[name.limit]
		limit.Inquire(w, wanted)
		out.Add(limit.Values(w, before, over, b.boundLimits.byPolicy[name.policy][name.limit].since))
	}
	return out
}
