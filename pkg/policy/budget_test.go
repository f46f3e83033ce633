package policy_test

import (
	"strings"
	"testing"

	"github.com/weir-dev/weir/pkg/federation/ledger"
	"github.com/weir-dev/weir/pkg/limiter"
	"github.com/weir-dev/weir/pkg/policy"
)

func TestValidateOfABudgetNamesTheField(t *testing.T) {
	limit := func(change func(*policy.Limit)) func(*policy.Policy) {
		return func(p *policy.Policy) { change(&p.Limits[1]) }
	}
	plain := func(change func(*policy.Limit)) func(*policy.Policy) {
		return limit(func(l *policy.Limit) { l.Fairness = nil; change(l) })
	}
	keyed := func(rates ...limiter.Rate) func(*policy.Policy) {
		return plain(func(l *policy.Limit) {
			l.Key, l.Clusters = &policy.Key{Parts: []policy.KeyPart{{Type: policy.PathKey}}, OnMissing: policy.Shared, MaxKeys: 1}, 2
			l.Overrides = []policy.Override{{Values: []policy.Value{{"/a"}}, Rates: rates}}
		})
	}
	redis := policy.Store{Type: policy.RedisStore, Address: "r:6379"}
	for name, tc := range map[string]struct {
		change func(*policy.Policy)
		want   string
	}{
		"no id":                     {limit(func(l *policy.Limit) { l.Budget.ID = "" }), "limits[1].budget.id is \"\""},
		"an id with a large letter": {limit(func(l *policy.Limit) { l.Budget.ID = "acme/Checkout" }), "limits[1].budget.id"},
		"an id with an empty part":  {limit(func(l *policy.Limit) { l.Budget.ID = "acme//checkout" }), "limits[1].budget.id"},
		"an id of 129 bytes":        {limit(func(l *policy.Limit) { l.Budget.ID = strings.Repeat("a", 129) }), "limits[1].budget.id"},
		"no name":                   {limit(func(l *policy.Limit) { l.Budget.Name = "" }), "limits[1].budget.name"},
		"no rate":                   {plain(func(l *policy.Limit) { l.Rates = nil }), "limits[1].rates are not those of a budget"},
		"a rate of a calendar": {
			plain(func(l *policy.Limit) {
				l.Rates = append(l.Rates, limiter.Rate{Limit: 1, Window: limiter.MaxWindow, Monthly: true})
			}),
			"limits[1].rates are not those of a budget",
		},
		"rates of one window": {
			plain(func(l *policy.Limit) { l.Rates = append(l.Rates, l.Rates[0]) }), "limits[1]",
		},
		"fairness over two rates": {
			limit(func(l *policy.Limit) { l.Rates = append(l.Rates, limiter.Rate{Limit: 1, Window: limiter.MaxWindow}) }),
			"limits[1].fairness splits one window, but the budget has 2 rates",
		},
		"another limit of a further rate of a value": {
			func(p *policy.Policy) {
				keyed(limiter.Rate{Limit: 5, Window: limiter.Second}, limiter.Rate{Limit: 2, Window: limiter.MaxWindow})(p)
				p.Limits[1].Rates = append(p.Limits[1].Rates, limiter.Rate{Limit: 1, Window: limiter.MaxWindow})
			}, "limits[1].overrides[0].rates are not those of a budget",
		},
		"a calendar":      {limit(func(l *policy.Limit) { l.Rates[0].Window, l.Rates[0].Monthly = limiter.MaxWindow, true }), "limits[1].rates"},
		"shifted windows": {limit(func(l *policy.Limit) { l.Rates[0].Offset = limiter.Second }), "limits[1].rates"},
		"a bucket":        {plain(func(l *policy.Limit) { l.Algorithm, l.Lifetime = policy.GCRA, limiter.Millisecond }), "limits[1].algorithm is GCRA"},
		"any of one rate": {plain(func(l *policy.Limit) { l.Any = true }), "limits[1].any is set, but all rates of a budget have to admit"},
		"a memory":        {limit(func(l *policy.Limit) { l.Retention.Durable = true }), "limits[1].retention.durable is set"},
		"a key": {limit(func(l *policy.Limit) {
			l.Key = &policy.Key{Parts: []policy.KeyPart{{Type: policy.PathKey}}, OnMissing: policy.Shared, MaxKeys: 1}
		}), "limits[1].key"},
		"another window of a value": {
			keyed(limiter.Rate{Limit: 5, Window: limiter.MaxWindow}), "limits[1].overrides[0].rates are not those of a budget",
		},
		"two rates of a value": {
			keyed(limiter.Rate{Limit: 5, Window: limiter.Second}, limiter.Rate{Limit: 5, Window: limiter.MaxWindow}), "limits[1].overrides[0].rates are not those of a budget",
		},
		"too many clusters":   {func(p *policy.Policy) { p.Limits[1].Clusters = 65 }, "limits[1].clusters is 65, must be 0 to 64"},
		"no clusters":         {func(p *policy.Policy) { p.Limits[1].Clusters = -1 }, "limits[1].clusters is -1"},
		"another store":       {func(p *policy.Policy) { p.Store = redis }, "limits[1].budget is leased by the controller, not by store Redis"},
		"leases that outlive": {func(p *policy.Policy) { p.Consistency.Expiry = policy.CarryOver; p.Limits[1].Fairness = nil }, "limits[1].budget is granted by the window"},
	} {
		t.Run(name, func(t *testing.T) {
			s := shared(tc.change)
			if err := s.Validate(); err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("got error %v, want one that says %s", err, tc.want)
			}
		})
	}
	own := shared(keyed(limiter.Rate{Limit: 5, Window: limiter.Second}))
	if err := own.Validate(); err != nil {
		t.Errorf("a limit of a single value: %v", err)
	}
	several := shared(func(p *policy.Policy) {
		rates := []limiter.Rate{{Limit: 5, Window: limiter.Second}, {Limit: 9, Window: limiter.MaxWindow}}
		keyed(rates...)(p)
		p.Limits[1].Rates = append(p.Limits[1].Rates, rates[1])
	})
	if err := several.Validate(); err != nil {
		t.Errorf("two rates, and a value with a limit of its own: %v", err)
	}
	leaving := shared(func(p *policy.Policy) { p.Store, p.Draining = redis, true })
	if err := leaving.Validate(); err != nil {
		t.Errorf("a store that is no longer asked: %v", err)
	}
	longest := shared(limit(func(l *policy.Limit) { l.Budget.ID = strings.Repeat("a", 63) + "/" + strings.Repeat("b", 64) }))
	if err := longest.Validate(); err != nil {
		t.Errorf("an id of 128 bytes: %v", err)
	}
}

// TestIDsOfRatesAreOfNoObject, and are the same whatever other rates there are.
func TestIDsOfRatesAreOfNoObject(t *testing.T) {
	b := policy.FederatedBudget{ID: "acme/checkout", Name: "world"}
	b.Params.Window = limiter.Second
	b.Additional = []ledger.Params{{Limit: 5, Window: limiter.Day}, {Limit: 7, Window: limiter.MaxWindow}}
	seen := map[string]bool{}
	for i, r := range b.Rates() {
		if policy.ObjectID(r.ID) != b.ID || r.Name != b.Name || r.Params.Window != b.Windows()[i] || seen[r.ID] {
			t.Errorf("rate %d is %+v", i, r)
		}
		if further := i > 0; policy.IsBudgetID(r.ID) == further || (r.Of == b.ID) != further || (len(r.Additional) > 0) == further {
			t.Errorf("rate %d has the id %q of %q", i, r.ID, r.Of)
		}
		seen[r.ID] = true
	}
	if got := policy.RateID(b.ID, limiter.Day); !seen[got] {
		t.Errorf("the id of a day is %q", got)
	}
}
