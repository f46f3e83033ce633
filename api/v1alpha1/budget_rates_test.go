package v1alpha1_test

import (
	"testing"

	"sigs.k8s.io/controller-runtime/pkg/client"
)

// rated returns a valid spec of a budget of 100 a second with these additional rates, and more fields.
func rated(list, fields string) string {
	return budgetWith(`additionalRates: ` + list + `, ` + fields)
}

// ratedOf returns the same with these members.
func ratedOf(members, fields string) string {
	return budgetMembers(members, `additionalRates: [{limit: 1000, window: 1m}], `+fields)
}

const rateAMinute = `[{limit: 1000, window: 1m}]`

var validRates = map[string]string{
	"three rates":             rated(`[{limit: 1, window: 100ms}, {limit: 1000000000000, window: 744h}, {limit: 5, window: 59s}]`, ``),
	"rates of a key":          rated(rateAMinute, `key: {parts: [{type: ClientIP}], overrides: [{limit: 5, values: [{parts: ["192.0.2.1"]}]}]}, allocation: FirstCome`),
	"rates that lease ahead":  rated(rateAMinute, `onCoordinatorOutage: {action: RegionalOnly}`),
	"rates of a member":       rated(rateAMinute, aHub),
	"rates in a Redis":        rated(rateAMinute, `coordinator: {type: Redis, redis: {address: "r:1"}}, escrow: {type: Redis, redis: {address: "r:1"}}`),
	"rates by weight":         ratedOf(`[{name: a, weight: 3}, {name: b}]`, `allocation: Static, batch: {type: Fixed, size: 10}`),
	"a limit that is smaller": rated(`[{limit: 1, window: 1h}]`, ``),
}

func TestBudgetsWithSeveralRatesAreAccepted(t *testing.T) {
	for name, spec := range validRates {
		t.Run(name, func(t *testing.T) {
			if err := server.Create(t.Context(), newBudget(t, spec), client.DryRunAll, client.FieldValidation("Strict")); err != nil {
				t.Error(err)
			}
		})
	}
}

const sameWindow = "two rates have windows of the same length: keep the one with the smaller limit"

var invalidRates = map[string]invalid{
	"an empty list":          {rated(`[]`, ``), "spec.additionalRates", "should have at least 1 items"},
	"four rates":             {rated(repeat(4, `{limit: 1, window: 1%dm}`), ``), "spec.additionalRates", "must have at most 3 items"},
	"no units":               {rated(`[{limit: 0, window: 1m}]`, ``), "spec.additionalRates[0].limit", "should be greater than or equal to 1"},
	"too many units":         {rated(`[{limit: 1000000000001, window: 1m}]`, ``), "spec.additionalRates[0].limit", "should be less than or equal to 1000000000000"},
	"a window of no length":  {rated(`[{limit: 1, window: "60"}]`, ``), "spec.additionalRates[0].window", "not a duration"},
	"no window":              {rated(`[{limit: 1}]`, ``), "spec.additionalRates[0].window", "Required value"},
	"the window of the rate": {rated(`[{limit: 1000, window: 1000ms}]`, ``), "spec.additionalRates", sameWindow},
	"a window twice":         {rated(`[{limit: 1000, window: 1m}, {limit: 2, window: 60s}]`, ``), "spec.additionalRates", sameWindow},
	"a nominal":              {ratedOf(`[{name: a, nominal: 1}]`, ``), "spec.members", "or remove additionalRates"},
	"borrowing":              {ratedOf(`[{name: a, borrowingLimit: 1}]`, ``), "spec.members", "or remove additionalRates"},
	"a slice": {
		rated(rateAMinute, `onCoordinatorOutage: {action: Nominal}`), "spec.onCoordinatorOutage.action", "set action to FailClosed or RegionalOnly",
	},
}

func TestInvalidRatesOfBudgetsAreRefused(t *testing.T) {
	for name, tc := range invalidRates {
		t.Run(name, func(t *testing.T) {
			requireRefused(t, newBudget(t, tc.spec), tc)
		})
	}
}

func TestUpdatesOfRates(t *testing.T) {
	const two = `[{limit: 1000, window: 1m}, {limit: 5000, window: 1h}]`
	cases := map[string]struct {
		from, to string
		want     string // field of the only error; empty: accepted
	}{
		"a limit moves":                     {rated(two, ``), rated(`[{limit: 1, window: 1m}, {limit: 9000, window: 1h}]`, ``), ""},
		"they are written in another order": {rated(two, ``), rated(`[{limit: 5000, window: 60m}, {limit: 1000, window: 60s}]`, ``), ""},
		"a member joins":                    {ratedOf(`[{name: a}]`, ``), ratedOf(`[{name: a}, {name: b}]`, ``), ""},
		"a rate is added":                   {rated(rateAMinute, ``), rated(two, ``), "spec.additionalRates"},
		"the first is added":                {budgetWith(``), rated(rateAMinute, ``), "spec.additionalRates"},
		"a rate is removed":                 {rated(two, ``), rated(rateAMinute, ``), "spec.additionalRates"},
		"all are removed":                   {rated(rateAMinute, ``), budgetWith(``), "spec.additionalRates"},
		"a window changes":                  {rated(rateAMinute, ``), rated(`[{limit: 1000, window: 2m}]`, ``), "spec.additionalRates"},
		"of a member":                       {rated(rateAMinute, aHub), rated(`[{limit: 1000, window: 2m}]`, aHub), "spec.additionalRates"},
		"the window of the first":           {rated(rateAMinute, ``), `{` + anID + `, rate: {limit: 100, window: 2s}, ` + twoMembers + `, additionalRates: ` + rateAMinute + `}`, ""},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			requireUpdate(t, newBudget(t, tc.from), newBudget(t, tc.to), tc.want)
		})
	}
}
