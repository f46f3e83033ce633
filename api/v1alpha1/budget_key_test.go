package v1alpha1_test

import (
	"strings"
	"testing"

	"sigs.k8s.io/controller-runtime/pkg/client"
)

// keyedWith returns a valid spec of a budget with a key that has more fields.
func keyedWith(fields string) string {
	return budgetWith(`key: {parts: [{type: ClientIP}]}, allocation: FirstCome, ` + fields)
}

// keyedMembers returns a valid spec of a budget with a key and these members, and more fields.
func keyedMembers(list, fields string) string {
	return budgetMembers(list, `key: {parts: [{type: ClientIP}]}, allocation: FirstCome, `+fields)
}

// withBudgetKey returns a valid spec of a budget with that key.
func withBudgetKey(key string, fields ...string) string {
	return budgetWith(`key: {` + key + `}, allocation: FirstCome, ` + strings.Join(fields, ``))
}

const (
	aRedis         = `type: Redis, redis: {address: "r:6379"}`
	dividesNothing = "remove weight, borrowingLimit and lendingLimit of all members, or remove key"
	asksForAll     = "remove batch, or remove key"
	aPath          = `parts: [{type: Path}]`
	keptOfEach     = `allocation: FirstCome, onCoordinatorOutage: {action: Nominal}`
)

var invalidBudgetKeys = map[string]invalid{
	"no parts":                    {withBudgetKey(``), "spec.key.parts", "Required value"},
	"an empty list of parts":      {withBudgetKey(`parts: []`), "spec.key.parts", "should have at least 1 items"},
	"five parts":                  {withBudgetKey(`parts: ` + repeat(5, `{type: Header, header: {name: h%d}}`)), "spec.key.parts", "must have at most 4 items"},
	"a source twice":              {withBudgetKey(`parts: [{type: Header, header: {name: x-a}}, {type: Header, header: {name: X-A}}]`), "spec.key.parts", "two parts have the same source"},
	"an empty list of overrides":  {withBudgetKey(aPath + `, overrides: []`), "spec.key.overrides", "should have at least 1 items"},
	"33 overrides":                {withBudgetKey(aPath + `, overrides: ` + repeat(33, `{limit: 1, values: [{parts: [v%d]}]}`)), "spec.key.overrides", "must have at most 32 items"},
	"no values of an override":    {withBudgetKey(aPath + `, overrides: [{limit: 1, values: []}]`), "spec.key.overrides[0].values", "should have at least 1 items"},
	"65 values of an override":    {withBudgetKey(aPath + `, overrides: [{limit: 1, values: ` + repeat(65, `{parts: [v%d]}`) + `}]`), "spec.key.overrides[0].values", "must have at most 64 items"},
	"an override of no units":     {withBudgetKey(aPath + `, overrides: [{limit: 0, values: [{parts: [a]}]}]`), "spec.key.overrides[0].limit", "should be greater than or equal to 1"},
	"an override of too many":     {withBudgetKey(aPath + `, overrides: [{limit: 1000000000001, values: [{parts: [a]}]}]`), "spec.key.overrides[0].limit", "should be less than or equal to 1000000000000"},
	"an override without a limit": {withBudgetKey(aPath + `, overrides: [{values: [{parts: [a]}]}]`), "spec.key.overrides[0].limit", "Required value"},
	"a value of two parts":        {withBudgetKey(aPath + `, overrides: [{limit: 1, values: [{parts: [a]}, {parts: [a, b]}]}]`), "spec.key.overrides", "write one string for each of key.parts"},
	"a value without characters":  {withBudgetKey(aPath + `, overrides: [{limit: 1, values: [{parts: [""]}]}]`), "spec.key.overrides[0].values[0].parts[0]", "should be at least 1 chars long"},
	"an override below the nominal of all": {
		budgetMembers(`[{name: a, nominal: 2}, {name: b, nominal: 1}]`, `key: {`+aPath+`, overrides: [{limit: 2, values: [{parts: [a]}]}]}, `+keptOfEach),
		"spec.key.overrides", "raise its limit to their sum, or lower the nominal of members",
	},
	"an unknown onMissing":      {withBudgetKey(`parts: [{type: Path}], onMissing: Deny`), "spec.key.onMissing", `supported values: "Shared", "Skip", "Reject"`},
	"no values":                 {withBudgetKey(`parts: [{type: Path}], maxKeys: 0`), "spec.key.maxKeys", "should be greater than or equal to 1"},
	"too many values":           {withBudgetKey(`parts: [{type: Path}], maxKeys: 100001`), "spec.key.maxKeys", "should be less than or equal to 100000"},
	"fair shares":               {budgetWith(`key: {parts: [{type: Path}]}`), "spec.allocation", "set allocation to FirstCome, or remove key"},
	"floors":                    {budgetWith(`key: {parts: [{type: Path}]}, allocation: Static`), "spec.allocation", "set allocation to FirstCome"},
	"a weight":                  {keyedMembers(`[{name: a, weight: 2}, {name: b}]`, ``), "spec.members", dividesNothing},
	"borrowing":                 {keyedMembers(`[{name: a, borrowingLimit: 1}]`, ``), "spec.members", dividesNothing},
	"lending":                   {keyedMembers(`[{name: a, nominal: 2, lendingLimit: 1}]`, `onCoordinatorOutage: {action: Nominal}`), "spec.members", dividesNothing},
	"a nominal that is shared":  {keyedMembers(`[{name: a, nominal: 2}]`, ``), "spec.members", "set onCoordinatorOutage.action to Nominal"},
	"an outage that is met":     {keyedWith(`onCoordinatorOutage: {action: RegionalOnly}`), "spec.onCoordinatorOutage.action", "set action to FailClosed or Nominal, or remove key"},
	"slices without a hub":      {keyedMembers(`[{name: a, nominal: 2}]`, `onCoordinatorOutage: {action: Nominal}, coordinator: {type: Redis, redis: {address: "r:6379"}}`), "spec.onCoordinatorOutage.action", "set action to FailClosed, or keep the budget in a hub"},
	"an escrow in a Redis":      {keyedWith(`escrow: {type: Redis, redis: {address: "r:6379"}}`), "spec.escrow.type", "set type to Controller, or remove key"},
	"a batch of one size":       {keyedWith(`batch: {type: Fixed}`), "spec.batch", asksForAll},
	"a batch to begin with":     {keyedWith(`batch: {size: 17}`), "spec.batch", asksForAll},
	"a claim without its check": {withBudgetKey(`parts: [{type: JWTClaim, jwtClaim: {claim: sub, verification: Verified}}]`), "spec.key.parts[0].jwtClaim.provider", "set provider to the name of an entry of spec.jwtProviders"},
}

func TestInvalidKeysOfBudgetsAreRefused(t *testing.T) {
	for name, tc := range invalidBudgetKeys {
		t.Run(name, func(t *testing.T) {
			requireRefused(t, newBudget(t, tc.spec), tc)
		})
	}
}

func TestValidKeysOfBudgetsAreAccepted(t *testing.T) {
	for name, spec := range map[string]string{
		"one part":                    keyedWith(``),
		"four parts":                  withBudgetKey(`maxKeys: 100000, onMissing: Skip, parts: ` + repeat(4, `{type: Header, header: {name: h%d}}`)),
		"a claim that is verified":    withBudgetKey(`maxKeys: 1, parts: [{type: JWTClaim, jwtClaim: {claim: sub, verification: Verified, provider: accounts}}]`),
		"a member of a hub":           keyedWith(aHub),
		"a Redis that all reach":      keyedWith(`coordinator: {type: Redis, redis: {address: "r:6379"}}`),
		"a Postgres that all reach":   keyedWith(`coordinator: {type: Postgres, postgres: {address: "p:5432", database: weir}}`),
		"slices":                      keyedMembers(`[{name: a, nominal: 2}, {name: b}]`, `onCoordinatorOutage: {action: Nominal}`),
		"slices of a hub":             keyedMembers(`[{name: a, nominal: 2}, {name: b}]`, aHub+`, onCoordinatorOutage: {action: Nominal}`),
		"what is said by default":     keyedWith(`batch: {type: Adaptive, size: 16}, escrow: {type: Controller}, onCoordinatorOutage: {action: FailClosed}`),
		"64 members that are alike":   keyedMembers(repeat(64, `{name: m%d, weight: 1, nominal: 0}`), ``),
		"as many overrides as may be": withBudgetKey(aPath + `, overrides: ` + repeat(32, `{limit: 1000000000000, values: `+repeat(64, `{parts: [v%d]}`)+`}`)),
		"an override as large as the nominal of all": budgetMembers(`[{name: a, nominal: 2}, {name: b, nominal: 1}]`,
			`key: {`+aPath+`, overrides: [{limit: 3, values: [{parts: [a]}]}]}, `+keptOfEach),
		"small blocks of each value": keyedWith(`coordinator: {blockPercent: 1}`),
	} {
		t.Run(name, func(t *testing.T) {
			if err := server.Create(t.Context(), newBudget(t, spec), client.DryRunAll, client.FieldValidation("Strict")); err != nil {
				t.Error(err)
			}
		})
	}
}

func TestUpdatesOfKeysOfBudgets(t *testing.T) {
	for name, tc := range map[string]struct {
		from, to string
		want     string // field of the only error; empty: accepted
	}{
		"a key is given":                {budgetWith(``), keyedWith(``), ""},
		"a key is taken away":           {keyedWith(``), budgetWith(``), ""},
		"the key is another":            {keyedWith(``), withBudgetKey(`parts: [{type: Path}]`), ""},
		"a key in a Redis is given":     {budgetCoordinator(aRedis), keyedWith(`coordinator: {` + aRedis + `}`), "spec.key"},
		"a key in a Redis is taken":     {keyedWith(`coordinator: {` + aRedis + `}`), budgetCoordinator(aRedis), "spec.key"},
		"the key in a Redis is another": {keyedWith(`coordinator: {` + aRedis + `}`), withBudgetKey(`parts: [{type: Path}]`, `coordinator: {`+aRedis+`}`), ""},
		"an override is given":          {keyedWith(``), withBudgetKey(`parts: [{type: ClientIP}], overrides: [{limit: 7, values: [{parts: [192.0.2.1]}]}]`), ""},
		"an override is taken away":     {withBudgetKey(aPath + `, overrides: [{limit: 7, values: [{parts: [a]}]}]`), withBudgetKey(aPath), ""},
		"the allocation stays fair":     {budgetWith(``), budgetWith(`key: {parts: [{type: Path}]}`), "spec.allocation"},
	} {
		t.Run(name, func(t *testing.T) {
			requireUpdate(t, newBudget(t, tc.from), newBudget(t, tc.to), tc.want)
		})
	}
}

func TestDefaultsOfKeysOfBudgets(t *testing.T) {
	requireDefaulted(t, newBudget(t, keyedWith(``)), []string{"key"}, `{parts: [{type: ClientIP}], onMissing: Shared, maxKeys: 10000}`)
	requireDefaulted(t, newBudget(t, budgetWith(``)), []string{"key"}, ``)
}
