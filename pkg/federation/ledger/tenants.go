package ledger

// A Tenant of a member wants units of a window, 0 to limiter.MaxLimit, and has a weight of 1
// to limiter.MaxWeight.
type Tenant struct{ Weight, Wants int64 }

// Tenants is what a member says of its tenants: Met is what those want together that want
// less by weight than the others get, and Unmet the weight of the others. At a level of so
// many units for each weight the member's part of a window is Met + Unmet · level. The zero
// value says nothing: all of Command.Weight is unmet.
type Tenants struct{ Met, Unmet int64 }

// Scale is how many levels are one unit for each weight.
const Scale = 1 << 10

// TenantsAt returns what to report of tenants at a level, for a member with that nominal
// share, which lifts its tenants before the level does. When all want less those that want
// most by weight count as unmet, so that a member does not hold on to all that its tenants
// want.
//
// The use of tenants at a level, the sum of min(wants, weight · level), is a concave
// function of it. Met + Unmet · level is its tangent from below. So a ledger that divides a
// window by what all members say takes a step of Newton's method towards the level of one
// split over all tenants. Once no member speaks of a higher level than that the steps only
// go up, and each that changes anything passes what another tenant wants: they end at that
// level, in whatever order members speak (Ortega and Rheinboldt 1970, 13.3).
func TenantsAt(level, nominal int64, list []Tenant) Tenants {
	if nominal == 0 || len(list) == 0 {
		return orMost(below(level, Scale, list), list)
	}
	own := TenantsOf(nominal, list)
	t := orMost(below(level+own.Level(nominal), Scale, list), list)
	t.Met = max(0, t.Met+t.Unmet*(nominal-own.Met)/own.Unmet-nominal)
	return t
}

// TenantsOf returns what to say of tenants at the level that they reach when that many units
// are split over them.
func TenantsOf(units int64, list []Tenant) Tenants {
	t := below(0, 1, list)
	for t.Unmet > 0 {
		next := below(max(0, units-t.Met), t.Unmet, list)
		if next == t {
			break
		}
		t = next
	}
	return orMost(t, list)
}

// Level returns the level at which the part is that many units, in parts of Scale; 0 when it is
// more at any level.
func (t Tenants) Level(units int64) int64 {
	if t.Unmet == 0 {
		return 0
	}
	return max(0, units-t.Met) * Scale / t.Unmet
}

// Meets reports whether a tenant of those that t was returned for by TenantsOf gets what it wants of a
// split of that many units.
func (t Tenants) Meets(units int64, n Tenant) bool {
	return n.Wants*t.Unmet < max(0, units-t.Met)*n.Weight
}

// below returns what those want that want less by weight than units/weight.
func below(units, weight int64, list []Tenant) Tenants {
	var t Tenants
	for _, n := range list {
		if n.Wants*weight < units*n.Weight {
			t.Met += n.Wants
		} else {
			t.Unmet += n.Weight
		}
	}
	return t
}

// orMost returns t, unless all are met: then those that want most by weight are not.
func orMost(t Tenants, list []Tenant) Tenants {
	if t.Unmet > 0 || len(list) == 0 {
		return t
	}
	most := list[0]
	for _, n := range list {
		if n.Wants*most.Weight > most.Wants*n.Weight {
			most = n
		}
	}
	return below(most.Wants, most.Weight, list)
}
