package coordinator

import (
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/weir-dev/weir/internal/audit"
	"github.com/weir-dev/weir/internal/audit/poolaudit"
	"github.com/weir-dev/weir/pkg/policy"
)

// poolBooks are the audits of all pools.
type poolBooks struct {
	mu     sync.Mutex
	byName map[types.NamespacedName]*poolBook
}

// A poolBook is the audit of one pool.
type poolBook struct {
	*poolaudit.Pool
	holders map[audit.Holder]struct{}
	shown   poolFace
	idle    time.Time // since when it has no holders
}

// A poolFace is what a status says of a pool at once, or soon. Everything else is a
// figure, which waits.
type poolFace struct {
	generation, holders    int64
	pending                bool
	verdict                audit.Verdict
	saturated, quarantined bool
	cutOff                 int64
	known                  bool // a limit is
}

func faceOf(f poolaudit.Figures) poolFace {
	return poolFace{
		generation: f.Generation, holders: f.Holders, pending: f.Pending, verdict: f.Verdict, saturated: f.Saturated,
		quarantined: f.Quarantined > 0, cutOff: f.CutOff, known: f.Limit > 0,
	}
}

func newPoolBooks() *poolBooks { return &poolBooks{byName: map[types.NamespacedName]*poolBook{}} }

// enforce makes h account for p, which is nil for no pool, and no longer for before.
func (b *poolBooks) enforce(h audit.Holder, p, before *dividedPool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if before != nil && (p == nil || p.name != before.name) {
		b.remove(h, before.name)
	}
	if p == nil {
		return
	}
	config := poolaudit.Config{Generation: p.policy.Generation, Bounded: bounded(p.policy)}
	book := b.byName[p.name]
	if book == nil {
		book = &poolBook{Pool: poolaudit.New(ReportInterval, config), holders: map[audit.Holder]struct{}{}}
		b.byName[p.name] = book
	}
	now := time.Now()
	book.Reconfigure(config, now)
	book.Join(h, now)
	book.holders[h] = struct{}{}
}

// bounded reports whether what is in flight never exceeds the limit while all holders
// work by their shares.
func bounded(p *policy.Pool) bool {
	return p.Mode == policy.Enforce && p.Handoff == policy.Acknowledged
}

// leave takes a holder off the pool, which is nil for none.
func (b *poolBooks) leave(h audit.Holder, p *dividedPool) {
	if p == nil {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.remove(h, p.name)
}

func (b *poolBooks) remove(h audit.Holder, name types.NamespacedName) {
	book := b.byName[name]
	if book == nil {
		return
	}
	book.Leave(h)
	delete(book.holders, h)
	if len(book.holders) == 0 {
		book.idle = time.Now()
	}
}

// report enters what a holder says of its pool, and returns how many times it was
// fenced since it said something last.
func (b *poolBooks) report(h audit.Holder, name types.NamespacedName, r poolaudit.Report) (fences int64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if book := b.byName[name]; book != nil {
		return book.Report(h, r, time.Now())
	}
	return 0
}

// advance takes the samples that are due and returns the pools with a condition that may
// have changed.
func (b *poolBooks) advance(now time.Time) (changed []types.NamespacedName) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for name, book := range b.byName {
		if len(book.holders) == 0 && now.Sub(book.idle) > bookKept {
			delete(b.byName, name)
			continue
		}
		book.Advance(now)
		if face := faceOf(book.Figures(now)); face != book.shown {
			book.shown = face
			changed = append(changed, name)
		}
	}
	return changed
}

// figures returns those of the pool, nil when nobody has enforced it.
func (b *poolBooks) figures(name types.NamespacedName) *poolaudit.Figures {
	b.mu.Lock()
	defer b.mu.Unlock()
	book := b.byName[name]
	if book == nil {
		return nil
	}
	f := book.Figures(time.Now())
	return &f
}

// last returns what the holder said last of the pool, and false when it said nothing.
func (b *poolBooks) last(h audit.Holder, name types.NamespacedName) (poolaudit.Report, bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if book := b.byName[name]; book != nil {
		return book.Last(h)
	}
	return poolaudit.Report{}, false
}
