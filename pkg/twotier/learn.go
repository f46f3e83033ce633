package twotier

import "github.com/weir-dev/weir/pkg/limiter"

// batch returns the units a lease of the key asks for ahead of demand; mu is held.
//
// The store bounds what it grants from a window by the holders that leased in the
// window before. It cannot know of a holder that did not, and nothing guides grants
// that are time-coupled: those holders ask for no more than their part of the
// limit. Of a small budget the first to ask would otherwise take all, for requests
// that go to others.
func (k *Key) batch(cfg *settings, now int64) int64 {
	params := cfg.paramsOf(k.value())
	size := min(k.size(cfg), max(largestCost(params), 1))
	if n := k.limiter().holders.Load(); n > 0 && !k.guided(params, now) {
		size = min(size, (largestCost(params)+n-1)/n)
	}
	return size
}

// guided reports whether the store was asked in the window before, and so takes
// this holder into account.
func (k *Key) guided(p limiter.Params, now int64) bool {
	t := k.lease.Load().terms
	return t.ends != past && t.windows != nil && p.Algorithm.WindowCoupled() && now-t.ends < nanos(shortest(t.windows).Window)
}

// size returns the size of the next lease.
func (k *Key) size(cfg *settings) int64 {
	if cfg.Size.Type == Fixed {
		return cfg.Size.Batch
	}
	return cfg.sizing.size(k.sizer)
}

// learn takes note of what was asked for since the last reply, which r follows;
// held is what is left of it. mu is held. When r is of another window, the demand
// of the last one is known: what was served of it and what was refused.
func (k *Key) learn(cfg *settings, old *lease, held Hand, r *reply) {
	if !cfg.learns() {
		return
	}
	k.demand += old.refused.Swap(0)
	if w := old.terms.windows; w != nil && r.Windows.N > 0 && shortest(w).Index != shortest(&r.Windows).Index {
		left := held.Front.Credits + held.Back.Credits
		k.sizer = cfg.sizing.observe(k.sizer, k.demand-left)
		k.demand = left
	}
	k.demand += r.Granted
	if r.Reason == limiter.Exhausted {
		k.sizer = cfg.sizing.refused(k.sizer)
	}
}

// shortest returns the window of the least length.
func shortest(w *limiter.Windows) limiter.OpenWindow {
	least := w.Open[0]
	for _, v := range w.Slice() {
		if v.Window < least.Window {
			least = v
		}
	}
	return least
}
