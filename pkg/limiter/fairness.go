package limiter

import (
	"cmp"
	"slices"
)

// Bounds of fairness. A weight times a limit stays below 2^53.
const (
	MaxWeight   = int64(1000) // of a tenant
	MaxDeclared = 64          // tenants with a weight of their own
	// MaxTenants is how many other tenants are distinguished in a window. Those that
	// come later share one guarantee, as the tenant OtherTenants.
	MaxTenants = 1024
	// OtherTenants is not the hash of a tenant.
	OtherTenants = "*"
)

// Fairness splits a window over tenants by weight: weighted-fair escrow. A tenant's
// guarantee is ⌊weight · limit / W⌋, where W is the weight of the tenants that share the
// window: those that asked in it, and the declared ones that asked in the window before.
// The zero value splits nothing.
//
//   - The limit comes first: no guarantee lifts it.
//   - The unused guarantee of a declared tenant that shares the window is kept for it
//     until the window ends.
//   - A tenant gets the rest of its own guarantee, as far as that leaves what is
//     kept for the declared ones.
//   - Beyond its guarantee a tenant gets what nobody's guarantee needs, the other
//     tenants of the open window included, and is never further beyond it than
//     the least it asks for: the quantum of deficit round robin (Shreedhar and
//     Varghese 1995). So two tenants that want more than they get are apart by at
//     most one request each, in whatever order they ask.
//   - A declared tenant that asked neither in the window nor in the one before is idle,
//     and its part is lent. When it comes back its guarantee is kept from its first
//     request on, of what was not granted by then: it may lose up to all of it in that
//     one window, and nothing in the next. Reserve keeps its part while it is idle.
type Fairness struct {
	Weights []Weight // the declared tenants, each once, ordered by tenant
	Default int64    // the weight of each other tenant, 1 to MaxWeight; 0 splits nothing
	Reserve bool     // every declared tenant shares every window, whether or not it asks
}

// A Weight is a declared tenant's, 1 to MaxWeight.
type Weight struct {
	Tenant string
	Weight int64
}

// TenantUse is what a tenant was granted of the open window, returns taken off. It is
// Lately of a declared tenant that asked in the window before, and not yet in this one.
type TenantUse struct {
	Tenant string
	Used   int64
}

// Lately stands in the place of what a tenant was granted of the open window.
const Lately = int64(-1)

// A share is what one tenant may have of the open window.
type share struct {
	used int64 // granted to it
	left int64 // that it can still get
}

// fair reports whether the window of the state is split over tenants.
func (p *Params) fair(s *State) bool {
	return p.Fairness.Default > 0 && s.N == 1 && s.Algorithm.WindowCoupled()
}

// share returns what the tenant may have when the least it asks for is amount.
func (p *Params) share(s *State, tenant string, amount int64) share {
	m := &s.Meters[0]
	free := max(0, m.Limit-m.Used)
	tenant = p.Fairness.account(s, tenant)
	whole := p.Fairness.whole(s, tenant)

	own := share{used: s.usedBy(tenant)}
	part := p.Fairness.Default * m.Limit / whole // of each tenant that is not declared
	guarantee := part
	var kept, lent int64 // what other tenants have not used of theirs: declared, and not
	for _, t := range s.Tenants {
		if t.Used != Lately && t.Tenant != tenant && t.Used < part {
			lent += part - t.Used
		}
	}
	for _, w := range p.Fairness.Weights {
		theirs, used := w.Weight*m.Limit/whole, s.usedBy(w.Tenant)
		if w.Tenant == tenant {
			guarantee = theirs
			continue
		}
		if !p.Fairness.shares(s, w.Tenant) {
			continue
		}
		kept += max(0, theirs-used)
		if s.knows(w.Tenant) {
			lent -= max(0, part-used)
		}
	}
	due := min(max(0, guarantee-own.used), max(0, free-kept))
	spare := max(0, free-kept-lent)
	own.left = min(max(due, spare), max(0, guarantee+amount-own.used))
	return own
}

// whole returns the sum of the weights that share the window once the tenant has
// asked.
func (f *Fairness) whole(s *State, tenant string) int64 {
	var sum int64
	for _, w := range f.Weights {
		if w.Tenant == tenant || f.shares(s, w.Tenant) {
			sum += w.Weight
		}
	}
	others := f.others(s)
	if !f.declares(tenant) && !s.knows(tenant) {
		others++
	}
	return sum + others*f.Default
}

// shares reports whether a declared tenant shares the window before it asks.
func (f *Fairness) shares(s *State, tenant string) bool {
	_, noted := s.tenant(tenant)
	return noted || f.Reserve
}

// lately returns what is noted of the tenants of a window in the next one.
func (f *Fairness) lately(tenants []TenantUse) []TenantUse {
	var next []TenantUse
	for _, t := range tenants {
		if t.Used != Lately && !f.Reserve && f.declares(t.Tenant) {
			next = append(next, TenantUse{Tenant: t.Tenant, Used: Lately})
		}
	}
	return next
}

// account returns the name under which the tenant is counted.
func (f *Fairness) account(s *State, tenant string) string {
	if f.declares(tenant) || s.knows(tenant) || f.others(s) < MaxTenants {
		return tenant
	}
	return OtherTenants
}

// others returns the number of tenants in the open window that are not declared.
func (f *Fairness) others(s *State) int64 {
	var n int64
	for _, t := range s.Tenants {
		if t.Used != Lately {
			n++
		}
	}
	for _, w := range f.Weights {
		if s.knows(w.Tenant) {
			n--
		}
	}
	return n
}

func (f *Fairness) declares(tenant string) bool {
	_, ok := slices.BinarySearchFunc(f.Weights, tenant, func(w Weight, t string) int { return cmp.Compare(w.Tenant, t) })
	return ok
}

// neverFits reports an amount that the tenant cannot get even when it is the first
// to ask in a window.
func (f *Fairness) neverFits(limit int64, tenant string, amount int64) bool {
	whole := f.whole(&State{}, tenant)
	var kept int64
	for _, w := range f.Weights {
		if w.Tenant != tenant && f.Reserve {
			kept += w.Weight * limit / whole
		}
	}
	return amount > limit-kept
}

// grant adds to what the tenant was granted. A tenant that was granted nothing is
// noted too: it shares the window. The list is copied.
func (s *State) grant(tenant string, amount int64) {
	i, ok := s.tenant(tenant)
	if ok && amount == 0 && s.Tenants[i].Used != Lately {
		return
	}
	tenants := make([]TenantUse, len(s.Tenants), len(s.Tenants)+1)
	copy(tenants, s.Tenants)
	if !ok {
		tenants = slices.Insert(tenants, i, TenantUse{Tenant: tenant})
	}
	tenants[i].Used = max(0, tenants[i].Used) + amount
	s.Tenants = tenants
}

func (s *State) usedBy(tenant string) int64 {
	if i, ok := s.tenant(tenant); ok {
		return max(0, s.Tenants[i].Used)
	}
	return 0
}

// knows reports whether the tenant asked in the open window.
func (s *State) knows(tenant string) bool {
	i, ok := s.tenant(tenant)
	return ok && s.Tenants[i].Used != Lately
}

func (s *State) tenant(tenant string) (int, bool) {
	return slices.BinarySearchFunc(s.Tenants, tenant, func(t TenantUse, name string) int { return cmp.Compare(t.Tenant, name) })
}
