package federation

import (
	"cmp"
	"slices"

	"github.com/weir-dev/weir/pkg/federation/ledger"
	"github.com/weir-dev/weir/pkg/limiter"
)

// A tenant asked for units in the window or in the one before.
type tenant struct {
	name     string
	weight   int64
	declared bool
	// asked and before are units of the window and of the one before, refused ones
	// included, at most limiter.MaxLimit; or absent.
	asked, before int64
}

// absent stands in the place of units of a window in which a tenant did not ask.
const absent = int64(-1)

// wants returns what the tenant is taken to want of the window. Nothing is lent of the part of
// one that is declared, however little it asked for. Nothing is known of one that was not
// there in the window before.
func (t *tenant) wants() ledger.Tenant {
	wants := limiter.MaxLimit
	if !t.declared && t.before != absent {
		wants = max(0, t.asked, t.before)
	}
	return ledger.Tenant{Weight: t.weight, Wants: wants}
}

// tenants are ordered by name.
type tenants []tenant

// maxTenants is how many tenants of a limit are distinguished.
const maxTenants = limiter.MaxTenants + limiter.MaxDeclared

// note adds units, below 0 for those that came back, to what a tenant asked for.
func (l *tenants) note(f *limiter.Fairness, name string, units int64) {
	i, known := l.find(name)
	if !known && len(*l) >= maxTenants {
		name = limiter.OtherTenants
		i, known = l.find(name)
	}
	if !known {
		*l = slices.Insert(*l, i, tenant{name: name, asked: absent, before: absent})
	}
	t := &(*l)[i]
	t.weight, t.declared = f.Default, false
	if w, ok := slices.BinarySearchFunc(f.Weights, name, func(w limiter.Weight, n string) int { return cmp.Compare(w.Tenant, n) }); ok {
		t.weight, t.declared = f.Weights[w].Weight, true
	}
	t.asked = max(0, min(max(0, t.asked)+units, limiter.MaxLimit))
}

func (l tenants) find(name string) (int, bool) {
	return slices.BinarySearchFunc(l, name, func(t tenant, n string) int { return cmp.Compare(t.name, n) })
}

// next returns the tenants of the window that follows.
func (l tenants) next() tenants {
	var list tenants
	for _, t := range l {
		if t.asked != absent {
			t.asked, t.before = absent, t.asked
			list = append(list, t)
		}
	}
	return list
}

// satisfied returns those that want less by weight of that many units than others get. The
// one that asks now is not among them, nor one that is not declared and did not ask in the
// window yet.
func (l tenants) satisfied(units int64, asks string) (out tenants) {
	var sharing tenants
	var list []ledger.Tenant
	for _, t := range l {
		if !t.declared && t.asked == absent {
			continue
		}
		wants := t.wants()
		if t.name == asks {
			wants.Wants = limiter.MaxLimit
		}
		sharing, list = append(sharing, t), append(list, wants)
	}
	of := ledger.TenantsOf(units, list)
	for i := range sharing {
		if of.Meets(units, list[i]) {
			out = append(out, sharing[i])
		}
	}
	return out
}

// step applies a command. Tenants that want little are set aside with what they want, and
// the rest is split over the others.
func (d *division) step(p limiter.Params, at limiter.Instant, c limiter.Command) limiter.Result {
	var aside []limiter.TenantUse
	limit := &p.Rates[0].Limit
	for _, t := range d.tenants.satisfied(*limit, c.Tenant) {
		*limit -= t.wants().Wants
		if use := d.setAside(t.name); use.Tenant != "" {
			aside = append(aside, use)
		}
	}
	*limit = max(1, *limit)
	var res limiter.Result
	d.state, res = p.Step(d.state, at, c)
	for _, use := range aside {
		d.bringBack(use)
	}
	return res
}

// setAside takes out of the state what a tenant was granted of the window, if it was.
func (d *division) setAside(name string) limiter.TenantUse {
	m := &d.state.Meters[0]
	i, ok := d.granted(name)
	if !ok || m.Index != d.index {
		return limiter.TenantUse{}
	}
	use := d.state.Tenants[i]
	m.Used -= use.Used
	d.state.Tenants = slices.Delete(slices.Clone(d.state.Tenants), i, i+1)
	return use
}

// bringBack puts into the state again what was set aside.
func (d *division) bringBack(use limiter.TenantUse) {
	i, _ := d.granted(use.Tenant)
	d.state.Meters[0].Used += use.Used
	d.state.Tenants = slices.Insert(slices.Clone(d.state.Tenants), i, use)
}

// granted returns where the state has a tenant.
func (d *division) granted(name string) (int, bool) {
	return slices.BinarySearchFunc(d.state.Tenants, name, func(t limiter.TenantUse, n string) int { return cmp.Compare(t.Tenant, n) })
}
