package v1alpha1_test

import "testing"

func TestDefaultsOfBudgets(t *testing.T) {
	cases := map[string]struct {
		given string // YAML of a spec
		at    []string
		want  string // YAML of what is there after defaulting; empty: nothing
	}{
		"the whole of the smallest budget": {
			budgetWith(``), nil,
			`{id: acme/checkout, rate: {limit: 100, window: 1s}, members: [{name: eu-west, weight: 1, nominal: 0}, {name: us-east, weight: 1, nominal: 0}],
			  allocation: FairShare, coordinator: {type: Kubernetes}, escrow: {type: Controller}, batch: {type: Adaptive, size: 16}, onCoordinatorOutage: {action: FailClosed}}`,
		},
		"an empty coordinator is the hub":        {budgetWith(`coordinator: {}`), []string{"coordinator"}, `{type: Kubernetes}`},
		"a member of a hub keeps nothing":        {budgetWith(aHub), []string{"coordinator"}, `{type: Kubernetes}`},
		"an empty escrow is the controller":      {budgetWith(`escrow: {}`), []string{"escrow"}, `{type: Controller}`},
		"an empty batch is learned":              {budgetWith(`batch: {}`), []string{"batch"}, `{type: Adaptive, size: 16}`},
		"a fixed batch has a size":               {budgetWith(`batch: {type: Fixed}`), []string{"batch"}, `{type: Fixed, size: 16}`},
		"an empty onCoordinatorOutage fails":     {budgetWith(`onCoordinatorOutage: {}`), []string{"onCoordinatorOutage"}, `{action: FailClosed}`},
		"borrowing and lending have no bounds":   {member(`nominal: 5`), []string{"members"}, `[{name: eu-west, weight: 1, nominal: 5}]`},
		"lending nothing is not lending all":     {member(`nominal: 5, lendingLimit: 0, borrowingLimit: 0`), []string{"members"}, `[{name: eu-west, weight: 1, nominal: 5, lendingLimit: 0, borrowingLimit: 0}]`},
		"connections to a Redis are in the open": {budgetEscrow(`type: Redis, redis: {address: "r:1"}`), []string{"escrow"}, `{type: Redis, redis: {address: "r:1", tls: Disabled}}`},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			requireDefaulted(t, newBudget(t, tc.given), tc.at, tc.want)
		})
	}
}
