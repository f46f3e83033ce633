package ledger_test

import (
	"math/rand/v2"
	"testing"

	"github.com/weir-dev/weir/pkg/federation/ledger"
	"github.com/weir-dev/weir/pkg/limiter"
)

func TestReportsOfTenants(t *testing.T) {
	list := []ledger.Tenant{{Weight: 1, Wants: 10}, {Weight: 4, Wants: 20}, {Weight: 2, Wants: 100}}
	at := func(units, nominal int64) ledger.Tenants { return ledger.TenantsAt(units*ledger.Scale, nominal, list) }
	for name, c := range map[string]struct{ got, want ledger.Tenants }{
		"of none":                              {ledger.TenantsAt(7, 5, nil), ledger.Tenants{}},
		"all are unmet at no level":            {at(0, 0), ledger.Tenants{Unmet: 7}},
		"one that wants just as much is unmet": {at(5, 0), ledger.Tenants{Unmet: 7}},
		"the one that wants less":              {at(6, 0), ledger.Tenants{Met: 20, Unmet: 3}},
		"two that want less":                   {at(11, 0), ledger.Tenants{Met: 30, Unmet: 2}},
		"one that wants most is never met":     {at(1000, 0), ledger.Tenants{Met: 30, Unmet: 2}},
		"a nominal share that meets none":      {at(2, 7), ledger.Tenants{Unmet: 7}},
		"a nominal share lifts them":           {at(5, 7), ledger.Tenants{Met: 16, Unmet: 3}}, // by 1: 7 = 7·1, and 20 + 3·1 − 7
		"a nominal share above all they want":  {at(0, 500), ledger.Tenants{Unmet: 2}},
		"a split of nothing":                   {ledger.TenantsOf(0, list), ledger.Tenants{Unmet: 7}},
		"a split that meets one":               {ledger.TenantsOf(40, list), ledger.Tenants{Met: 20, Unmet: 3}},
		"a split that meets two":               {ledger.TenantsOf(100, list), ledger.Tenants{Met: 30, Unmet: 2}},
		"a split of more than all want":        {ledger.TenantsOf(500, list), ledger.Tenants{Met: 30, Unmet: 2}},
		"the largest numbers":                  {ledger.TenantsAt(limiter.MaxLimit*ledger.Scale, 0, []ledger.Tenant{{limiter.MaxWeight, limiter.MaxLimit}}), ledger.Tenants{Unmet: limiter.MaxWeight}},
	} {
		if c.got != c.want {
			t.Errorf("%s: got %+v, want %+v", name, c.got, c.want)
		}
	}
	for units, want := range map[int64]int64{19: 0, 20: 0, 26: 2 * ledger.Scale} {
		if got := (ledger.Tenants{Met: 20, Unmet: 3}).Level(units); got != want {
			t.Errorf("%d units are level %d, want %d", units, got, want)
		}
	}
	if got := (ledger.Tenants{}).Level(9); got != 0 {
		t.Errorf("of no tenants: level %d", got)
	}
}

// TestAReportIsATangent holds what the ledger relies on: what is said is never less than
// what tenants use at any level, and just that at the level it was said of, below the one at
// which all have what they want.
func TestAReportIsATangent(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 1))
	for range 20_000 {
		list := make([]ledger.Tenant, 1+rng.IntN(6))
		var wants int64
		for i := range list {
			list[i] = ledger.Tenant{Weight: 1 + rng.Int64N(9), Wants: rng.Int64N(2000)}
			wants += list[i].Wants
		}
		level := rng.Int64N(1000)
		said := ledger.TenantsAt(level*ledger.Scale, 0, list)
		if use := used(level, list); use < wants && said.Met+said.Unmet*level != use {
			t.Fatalf("%+v at %d of %+v, which use %d", said, level, list, use)
		}
		other := rng.Int64N(1000)
		if use := used(other, list); said.Met+said.Unmet*other < use {
			t.Fatalf("%+v of %+v, which use %d at %d", said, list, use, other)
		}
		units := rng.Int64N(2*wants + 1)
		reached := ledger.TenantsOf(units, list).Level(units)
		var use int64
		for _, n := range list {
			use += min(n.Wants, reached*n.Weight/ledger.Scale)
		}
		if due := min(units, wants); use > due || use < due-int64(len(list)) {
			t.Fatalf("a split of %d over %+v uses %d", units, list, use)
		}
	}
}

func used(level int64, list []ledger.Tenant) (units int64) {
	for _, n := range list {
		units += min(n.Wants, level*n.Weight)
	}
	return units
}
