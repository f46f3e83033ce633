package coordinator

import (
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/weir-dev/weir/internal/controlplane/audit"
	"github.com/weir-dev/weir/internal/controlplane/audit/poolaudit"
	"github.com/weir-dev/weir/pkg/policy"
)

// poolAccounting is the audits of all pools.
type poolAccounting struct {
	mu     sync.Mutex
	byName map[types.NamespacedName]*poolAccount
}

// A poolAccount is the audit of one pool.
type poolAccount struct {
	*poolaudit.Pool
	holders map[audit.Holder]struct{}
	shown   poolSummary
	idle    time.Time // since when it has no holders
}

// A poolSummary is what a status says of a pool at once, or soon. Everything else is a
// figure, which waits.
type poolSummary struct {
	generation, holders    int64
	pending                bool
	verdict                audit.Verdict
	saturated, quarantined bool
	cutOff                 int64
	known                  bool // a limit is
}

func summaryOf(f poolaudit.Figures) poolSummary {
	return poolSummary{
		generation: f.Generation, holders: f.Holders, pending: f.Pending, verdict: f.Verdict, saturated: f.Saturated,
		quarantined: f.Quarantined > 0, cutOff: f.CutOff, known: f.Limit > 0,
	}
}

func newPoolAccounting() *poolAccounting {
	return &poolAccounting{byName: map[types.NamespacedName]*poolAccount{}}
}

// enforce makes h account for the pools of next, and no longer for others of before.
func (b *poolAccounting) enforce(h audit.Holder, next, before map[types.NamespacedName]*dividedPool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for name := range before {
		if next[name] == nil {
			b.remove(h, name)
		}
	}
	for _, p := range next {
		b.join(h, p)
	}
}

// join makes h account for p; mu is held.
func (b *poolAccounting) join(h audit.Holder, p *dividedPool) {
	config := poolaudit.Config{Generation: p.policy.Generation, Bounded: bounded(p.policy)}
	account := b.byName[p.name]
	if account == nil {
		account = &poolAccount{Pool: poolaudit.New(ReportInterval, config), holders: map[audit.Holder]struct{}{}}
		b.byName[p.name] = account
	}
	now := time.Now()
	account.Reconfigure(config, now)
	account.Join(h, now)
	account.holders[h] = struct{}{}
}

// bounded reports whether what is in flight never exceeds the limit while all holders
// work by their shares.
func bounded(p *policy.Pool) bool {
	return p.Mode == policy.Enforce && p.Handoff == policy.Acknowledged
}

// leave takes a holder off the pools.
func (b *poolAccounting) leave(h audit.Holder, pools map[types.NamespacedName]*dividedPool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for name := range pools {
		b.remove(h, name)
	}
}

func (b *poolAccounting) remove(h audit.Holder, name types.NamespacedName) {
	account := b.byName[name]
	if account == nil {
		return
	}
	account.Leave(h)
	delete(account.holders, h)
	if len(account.holders) == 0 {
		account.idle = time.Now()
	}
}

// report enters what a holder says of a pool, and returns how many times it was
// fenced since it said something last.
func (b *poolAccounting) report(h audit.Holder, name types.NamespacedName, r poolaudit.Report) (fences int64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if account := b.byName[name]; account != nil {
		return account.Report(h, r, time.Now())
	}
	return 0
}

// advance takes the samples that are due and returns the pools with a condition that may
// have changed.
func (b *poolAccounting) advance(now time.Time) (changed []types.NamespacedName) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for name, account := range b.byName {
		if len(account.holders) == 0 && now.Sub(account.idle) > accountKept {
			delete(b.byName, name)
			continue
		}
		account.Advance(now)
		if now := summaryOf(account.Figures(now)); now != account.shown {
			account.shown = now
			changed = append(changed, name)
		}
	}
	return changed
}

// figures returns those of the pool, nil when nobody has enforced it.
func (b *poolAccounting) figures(name types.NamespacedName) *poolaudit.Figures {
	b.mu.Lock()
	defer b.mu.Unlock()
	account := b.byName[name]
	if account == nil {
		return nil
	}
	f := account.Figures(time.Now())
	return &f
}

// last returns what the holder said last of the pool, and false when it said nothing.
func (b *poolAccounting) last(h audit.Holder, name types.NamespacedName) (poolaudit.Report, bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if account := b.byName[name]; account != nil {
		return account.Last(h)
	}
	return poolaudit.Report{}, false
}
