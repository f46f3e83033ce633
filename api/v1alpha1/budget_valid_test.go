package v1alpha1_test

import (
	"strings"
	"testing"

	"sigs.k8s.io/controller-runtime/pkg/client"
)

// validBudgets are at the edge of what the schema accepts.
var validBudgets = map[string]string{
	"the smallest budget":           `{id: a, rate: {limit: 1, window: 100ms}, members: [{name: a}]}`,
	"the largest budget":            `{` + anID + `, rate: {limit: 1000000000000, window: 744h}, members: [{name: a, weight: 1000, nominal: 1000000000000, borrowingLimit: 1000000000000, lendingLimit: 1000000000000}]}`,
	"an id of 128 characters":       budgetID(strings.Repeat("a", 63) + "/" + strings.Repeat("b", 64)),
	"an id of many parts":           budgetID("a/b.c/d-e/0"),
	"a member of 63 characters":     budgetMembers(`[{name: `+strings.Repeat("a", 63)+`}]`, ``),
	"64 members":                    budgetMembers(repeat(64, `{name: m%d, weight: 2, nominal: 1, borrowingLimit: 0, lendingLimit: 1}`), ``),
	"nominals of the whole limit":   budgetMembers(`[{name: a, nominal: 50}, {name: b, nominal: 50, lendingLimit: 0}]`, ``),
	"64 nominals of a large limit":  `{` + anID + `, rate: {limit: 1000000000000, window: 1s}, members: ` + repeat(64, `{name: m%d, nominal: 15625000000}`) + `}`,
	"every other way":               budgetWith(`allocation: Static, batch: {type: Fixed, size: 1000000}, onCoordinatorOutage: {action: RegionalOnly}`),
	"the first comes":               budgetWith(`allocation: FirstCome, batch: {type: Adaptive, size: 1}`),
	"a member of a hub":             budgetWith(aHub),
	"a member that says the usual":  budgetWith(aHub + `, coordinator: {type: Kubernetes}`),
	"small blocks":                  budgetCoordinator(`type: Kubernetes, blockPercent: 1`),
	"one block":                     budgetCoordinator(`blockPercent: 100`),
	"a Redis that all reach":        budgetCoordinator(`type: Redis, redis: {address: "redis:6379", tls: Enabled, secretRef: {name: redis}}`),
	"a Redis behind Sentinels":      budgetCoordinator(`type: Redis, redis: {sentinel: {primary: mymaster, addresses: ` + repeat(16, `"s%d:26379"`) + `}}`),
	"a Postgres that all reach":     budgetCoordinator(`type: Postgres, postgres: {address: "pg:5432", database: weir}`),
	"an escrow in a Redis":          budgetEscrow(`type: Redis, redis: {address: "redis:6379", secretRef: {name: redis}}`),
	"an escrow in a cluster":        budgetEscrow(`type: Redis, redis: {cluster: {addresses: ` + repeat(16, `"s%d:6379"`) + `}}`),
	"an outage on nominals":         budgetMembers(`[{name: a, nominal: 10}, {name: b}]`, `onCoordinatorOutage: {action: Nominal}`),
	"an outage on a part of them":   budgetMembers(`[{name: a, nominal: 10, lendingLimit: 9}]`, `onCoordinatorOutage: {action: Nominal}`),
	"an outage of a hub's nominals": budgetMembers(`[{name: a, nominal: 10}]`, aHub+`, onCoordinatorOutage: {action: Nominal}`),
}

func TestValidBudgetsAreAccepted(t *testing.T) {
	for name, spec := range validBudgets {
		t.Run(name, func(t *testing.T) {
			if err := server.Create(t.Context(), newBudget(t, spec), client.DryRunAll, client.FieldValidation("Strict")); err != nil {
				t.Error(err)
			}
		})
	}
}

func TestUnknownFieldsOfBudgetsAreRefused(t *testing.T) {
	for _, field := range []string{"podSelector: {}", "mode: Enforce", "limits: []", "coordinator: {type: Kubernetes, etcd: {}}"} {
		t.Run(field, func(t *testing.T) {
			err := server.Create(t.Context(), newBudget(t, budgetWith(field)), client.DryRunAll, client.FieldValidation("Strict"))
			if err == nil || !strings.Contains(err.Error(), `unknown field "spec.`) {
				t.Errorf("Create = %v, want a refusal that names the unknown field", err)
			}
		})
	}
}
