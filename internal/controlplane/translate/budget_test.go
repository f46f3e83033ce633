package translate_test

import (
	"strings"
	"testing"

	"github.com/weir-dev/weir/api/v1alpha1"
	"github.com/weir-dev/weir/internal/controlplane/translate"
)

// budgetOf returns a budget with that spec.
func budgetOf(t *testing.T, spec string) *v1alpha1.FederatedBudget {
	t.Helper()
	return defaultedBudget(t, []byte(`{metadata: {name: checkout, namespace: shop}, spec: `+spec+`}`))
}

// budgeted returns the spec of a budget with more fields.
func budgeted(rate, members, fields string) string {
	return `{id: acme/checkout, rate: {` + rate + `}, members: ` + members + `, ` + fields + `}`
}

const (
	aSecond = `limit: 100, window: 1s`
	both    = `[{name: eu-west}, {name: us-east}]`
	aHub    = `hub: {endpoint: "hub:15040", secretRef: {name: hub}}`
)

// byAddress are fields of a budget by the client's address with these overrides.
func byAddress(overrides string) string {
	return `allocation: FirstCome, key: {parts: [{type: ClientIP}], overrides: [` + overrides + `]}`
}

// The API server refuses these; a controller that reads what was stored before it did
// has to, too.
func TestValidateBudgetRefuses(t *testing.T) {
	for name, tc := range map[string]invalid{
		"a window without a unit":  {budgeted(`limit: 100, window: "1"`, both, ``), "spec.rate.window", "not a duration"},
		"a rate of nothing":        {budgeted(`limit: 0, window: 1s`, both, ``), "spec", "limit"},
		"a window that is short":   {budgeted(`limit: 1, window: 1ms`, both, ``), "spec", "window"},
		"nominals of too much":     {budgeted(aSecond, `[{name: eu-west, nominal: 101}]`, ``), "spec", "nominal"},
		"lending of too much":      {budgeted(aSecond, `[{name: eu-west, nominal: 1, lendingLimit: 2}]`, ``), "spec", "members[0]"},
		"a member twice":           {budgeted(aSecond, `[{name: eu-west}, {name: eu-west}]`, ``), "spec", "members"},
		"a value twice":            {budgeted(aSecond, both, byAddress(`{limit: 1, values: [{parts: ["2001:db8::1"]}]}, {limit: 2, values: [{parts: ["2001:db8::2"]}]}`)), "spec.key.overrides[1].values[0]", "names the value of spec.key.overrides[0].values[0] a second time"},
		"a value of two parts":     {budgeted(aSecond, both, byAddress(`{limit: 1, values: [{parts: ["192.0.2.1", a]}]}`)), "spec.key.overrides[0].values[0].parts", "has 2 parts, but the key has 1"},
		"a value that none has":    {budgeted(aSecond, both, byAddress(`{limit: 1, values: [{parts: [a]}]}`)), "spec.key.overrides[0].values[0].parts[0]", "address"},
		"an override of nothing":   {budgeted(aSecond, both, byAddress(`{limit: 0, values: [{parts: ["192.0.2.1"]}]}`)), "spec", "overrides[0].limit"},
		"an override that is kept": {budgeted(aSecond, `[{name: eu-west, nominal: 2}]`, byAddress(`{limit: 1, values: [{parts: ["192.0.2.1"]}]}`)+`, onCoordinatorOutage: {action: Nominal}`), "spec", "members use 2 of each value without asking"},
		"no members":               {budgeted(aSecond, `[]`, ``), "spec", "members"},
	} {
		t.Run(name, func(t *testing.T) {
			b := budgetOf(t, tc.spec)
			warnings, errs := translate.ValidateBudget(b, self)
			if len(errs) != 1 || errs[0].Field != tc.field || !strings.Contains(errs[0].Error(), tc.message) {
				t.Errorf("ValidateBudget = %v, want one error about %s that says %q", errs, tc.field, tc.message)
			}
			if len(warnings) > 0 {
				t.Errorf("it warns of %q, too", warnings)
			}
			if _, err := translate.Budget(b, self); err == nil {
				t.Error("Budget translates what ValidateBudget refuses")
			}
		})
	}
}

func TestABudgetOfOtherClusters(t *testing.T) {
	b := budgetOf(t, budgeted(aSecond, both, ``))
	const want = `this cluster is "ap-south" by the flag --cluster-name of its controller, and none of the members (eu-west, us-east)`
	if _, err := translate.Budget(b, "ap-south"); err == nil || !strings.Contains(err.Error(), "spec.members: ") || !strings.Contains(err.Error(), want) {
		t.Errorf("Budget fails with %v, want an error that says %q", err, want)
	}
	warnings, errs := translate.ValidateBudget(b, "ap-south")
	if len(errs) > 0 || len(warnings) != 1 || !strings.HasPrefix(warnings[0], "spec.members: "+want) {
		t.Errorf("ValidateBudget = %q, %v; want a warning that says %q", warnings, errs, want)
	}
}

var doubtfulBudgets = map[string]invalid{
	"a short window far from its hub": {budgeted(`limit: 100, window: 999ms`, both, aHub), "spec.rate.window", "a window of 999ms may be over by the time"},
	"blocks that are small":           {budgeted(aSecond, both, `coordinator: {blockPercent: 9}`), "spec.coordinator.blockPercent", "more than 10 times a second for it: raise it to 10"},
	"a tenth of a short window":       {budgeted(`limit: 100, window: 100ms`, both, ``), "spec.coordinator.blockPercent", "raise it to 100, or use a longer window"},
	"a third of a window is too many": {budgeted(`limit: 100, window: 250ms`, both, `coordinator: {blockPercent: 49}`), "spec.coordinator.blockPercent", "raise it to 50"},
	"a lease of the whole limit":      {budgeted(aSecond, both, `batch: {type: Fixed, size: 100}`), "spec.batch.size", "lower it, for example to 10"},
	"weights that nobody weighs":      {budgeted(aSecond, `[{name: eu-west, weight: 2}, {name: us-east}]`, `allocation: FirstCome`), "spec.members[0].weight", "remove it, or set allocation to FairShare"},
	"a nominal that is all lent":      {budgeted(aSecond, `[{name: eu-west}, {name: us-east, nominal: 5}]`, `allocation: FirstCome`), "spec.members[1].nominal", "set lendingLimit below it"},
	"a member that gets nothing":      {budgeted(aSecond, `[{name: eu-west}, {name: us-east, borrowingLimit: 0}]`, ``), "spec.members[1].borrowingLimit", "raise one of the two"},
	"lending of what is not lent":     {budgeted(aSecond, `[{name: eu-west, nominal: 5, lendingLimit: 1}]`, `allocation: Static`), "spec.members[0].lendingLimit", "Static lends nothing anyway"},
	"an outage without a slice":       {budgeted(aSecond, `[{name: eu-west}, {name: us-east, nominal: 5}]`, `onCoordinatorOutage: {action: Nominal}`), "spec.onCoordinatorOutage.action", "this cluster keeps nothing of its nominal"},
}

func TestValidateBudgetDoubts(t *testing.T) {
	for name, tc := range doubtfulBudgets {
		t.Run(name, func(t *testing.T) {
			warnings, errs := translate.ValidateBudget(budgetOf(t, tc.spec), self)
			if len(errs) > 0 {
				t.Fatalf("it is refused: %v", errs)
			}
			if len(warnings) != 1 || !strings.HasPrefix(warnings[0], tc.field+": ") || !strings.Contains(warnings[0], tc.message) {
				t.Errorf("ValidateBudget warns of %q\nwant one warning of %s that says %q", warnings, tc.field, tc.message)
			}
		})
	}
}

// TestValidateBudgetDoubtsNot shows the other side of the doubts that compare.
func TestValidateBudgetDoubtsNot(t *testing.T) {
	for name, spec := range map[string]string{
		"a second from its hub":         budgeted(aSecond, both, aHub),
		"a short window of the hub":     budgeted(`limit: 100, window: 999ms`, both, `coordinator: {blockPercent: 12}`),
		"ten blocks a second":           budgeted(aSecond, both, `coordinator: {blockPercent: 10}`),
		"few units are few blocks":      budgeted(`limit: 10, window: 1s`, both, `coordinator: {blockPercent: 1}`),
		"small blocks of a long window": budgeted(`limit: 1000000, window: 10s`, both, `coordinator: {blockPercent: 1}`),
		"a window of one block":         budgeted(`limit: 100, window: 100ms`, both, `coordinator: {blockPercent: 100}`),
		"no blocks at all":              budgeted(`limit: 100, window: 100ms`, both, `coordinator: {type: Redis, redis: {address: "r:1"}}`),
		"a lease of less":               budgeted(aSecond, both, `batch: {type: Fixed, size: 99}`),
		"a lease of one member":         budgeted(aSecond, `[{name: eu-west}]`, `batch: {type: Fixed, size: 100}`),
		"a lease that is learned":       budgeted(aSecond, both, `batch: {size: 1000}`),
		"weights that are weighed":      budgeted(aSecond, `[{name: eu-west, weight: 2}, {name: us-east}]`, `allocation: Static`),
		"a nominal that is kept":        budgeted(aSecond, `[{name: eu-west, nominal: 5, lendingLimit: 4}]`, `allocation: FirstCome`),
		"a nominal that bounds":         budgeted(aSecond, `[{name: eu-west, nominal: 5, borrowingLimit: 4}]`, `allocation: FirstCome`),
		"a member with a nominal":       budgeted(aSecond, `[{name: eu-west, nominal: 1, borrowingLimit: 0}]`, ``),
		"lending of a slice":            budgeted(aSecond, `[{name: eu-west, nominal: 5, lendingLimit: 1}]`, `allocation: Static, onCoordinatorOutage: {action: Nominal}`),
		"an outage with a slice":        budgeted(aSecond, `[{name: eu-west, nominal: 5}, {name: us-east}]`, `onCoordinatorOutage: {action: Nominal}`),
	} {
		t.Run(name, func(t *testing.T) {
			if warnings, errs := translate.ValidateBudget(budgetOf(t, spec), self); len(errs) > 0 || len(warnings) > 0 {
				t.Errorf("ValidateBudget = %q, %v; want neither warnings nor errors", warnings, errs)
			}
		})
	}
}
