package translate_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/weir-dev/weir/api/v1alpha1"
	"github.com/weir-dev/weir/internal/controlplane/translate"
	"github.com/weir-dev/weir/pkg/federation/ledger"
	"github.com/weir-dev/weir/pkg/limiter"
	"github.com/weir-dev/weir/pkg/policy"
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
	aDay    = `additionalRates: [{limit: 10000, window: 24h}]`
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
		"a slice of several rates": {budgeted(aSecond, `[{name: eu-west, nominal: 5}]`, aDay+`, onCoordinatorOutage: {action: Nominal}`), "spec.additionalRates", "members go on with a part of one rate only"},
		"a rate without a unit":    {budgeted(aSecond, both, `additionalRates: [{limit: 1, window: "1"}]`), "spec.additionalRates[0].window", "not a duration"},
		"a rate of no units":       {budgeted(aSecond, both, `additionalRates: [{limit: 0, window: 1m}]`), "spec.additionalRates", "limit"},
		"the same window":          {budgeted(aSecond, both, `additionalRates: [{limit: 1, window: 1000ms}]`), "spec", "others[0]"},
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
	"a short further window":          {budgeted(`limit: 1000, window: 1h`, both, aHub+`, additionalRates: [{limit: 10, window: 500ms}]`), "spec.additionalRates[0].window", "a window of 500ms may be over by the time"},
	"a rate that never binds":         {budgeted(aSecond, both, `additionalRates: [{limit: 60000, window: 1m}]`), "spec.additionalRates[0]", "60000 per 1m is never reached, because spec.rate alone keeps below it"},
	"a first rate that never binds":   {budgeted(aSecond, both, `additionalRates: [{limit: 100, window: 1m}]`), "spec.rate", "100 per 1s is never reached, because spec.additionalRates[0] alone keeps below it"},
	"blocks of a further rate":        {budgeted(`limit: 1000, window: 1h`, both, `additionalRates: [{limit: 100, window: 100ms}]`), "spec.coordinator.blockPercent", "raise it to 100, or use a longer window"},
	"a lease of a further rate":       {budgeted(aSecond, both, `additionalRates: [{limit: 60, window: 500ms}], coordinator: {blockPercent: 20}, batch: {type: Fixed, size: 60}`), "spec.batch.size", "one lease can hold the whole limit (60)"},
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

// TestFurtherRatesAreBudgetsOfTheirOwn, whatever order they are written in.
func TestFurtherRatesAreBudgetsOfTheirOwn(t *testing.T) {
	const fields = `coordinator: {blockPercent: 10}, allocation: FirstCome, key: {parts: [{type: ClientIP}], maxKeys: 7, overrides: [{limit: 5, values: [{parts: ["192.0.2.1"]}]}]}, `
	one, err := translate.Budget(budgetOf(t, budgeted(aSecond, both, fields+`additionalRates: [{limit: 10000, window: 24h}, {limit: 600, window: 1m}]`)), self)
	if err != nil {
		t.Fatal(err)
	}
	other, err := translate.Budget(budgetOf(t, budgeted(aSecond, both, fields+`additionalRates: [{limit: 600, window: 60s}, {limit: 10000, window: 1440m}]`)), self)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(one, other); diff != "" {
		t.Errorf("written in another order (-one +other):\n%s", diff)
	}
	minute, day := 60*limiter.Second, limiter.Day
	if diff := cmp.Diff([]limiter.Micros{minute, day}, one.Params.Others); diff != "" {
		t.Errorf("the first rate knows of (-want +got):\n%s", diff)
	}
	hash := one.Params.Overrides[0].Hash
	if diff := cmp.Diff([]ledger.Override{{Hash: hash, Limit: 5, Block: 1}}, one.Params.Overrides); diff != "" {
		t.Errorf("an override of the first rate (-want +got):\n%s", diff)
	}
	want := one.Params
	want.Limit, want.Window, want.Block, want.Others = 10000, day, 1000, nil
	want.Overrides = []ledger.Override{{Hash: hash, Limit: 10000, Block: 1000}}
	all := one.Rates()
	if len(all) != 3 {
		t.Fatalf("%d rates, want 3", len(all))
	}
	if diff := cmp.Diff(want, all[2].Params); diff != "" || all[2].ID != policy.RateID("acme/checkout", day) {
		t.Errorf("the day is %s (-want +got):\n%s", all[2].ID, diff)
	}
	rates := []limiter.Rate{{Limit: 5, Window: limiter.Second}, {Limit: 600, Window: minute}, {Limit: 10000, Window: day}}
	if diff := cmp.Diff(rates, one.Overrides[0].Rates); diff != "" {
		t.Errorf("an override has (-want +got):\n%s", diff)
	}
}
