package v1alpha1_test

import (
	"strings"
	"testing"
)

const (
	anID       = `id: acme/checkout`
	aBudget    = `rate: {limit: 100, window: 1s}`
	twoMembers = `members: [{name: eu-west}, {name: us-east}]`
	aHub       = `hub: {endpoint: "hub.example.com:15040", secretRef: {name: weir-hub}}`
)

// budgetWith returns a valid spec of a budget with more fields.
func budgetWith(fields string) string {
	return `{` + anID + `, ` + aBudget + `, ` + twoMembers + `, ` + fields + `}`
}

func budgetID(id string) string { return `{id: "` + id + `", ` + aBudget + `, ` + twoMembers + `}` }

func budgetRate(fields string) string {
	return `{` + anID + `, rate: {` + fields + `}, ` + twoMembers + `}`
}

// budgetMembers returns a valid spec of a budget with these members, and more fields.
func budgetMembers(list, fields string) string {
	return `{` + anID + `, ` + aBudget + `, members: ` + list + `, ` + fields + `}`
}

// member returns a valid spec of a budget with a member that has more fields.
func member(fields string) string { return budgetMembers(`[{name: eu-west, `+fields+`}]`, ``) }

func budgetCoordinator(fields string) string { return budgetWith(`coordinator: {` + fields + `}`) }

func budgetEscrow(fields string) string { return budgetWith(`escrow: {` + fields + `}`) }

func budgetHub(fields string) string { return budgetWith(`hub: {` + fields + `}`) }

const (
	notAnID      = "use lower-case letters, digits, dashes and dots, in parts that slashes separate, such as shop/checkout"
	keepsNothing = "set the nominal of members, with a lendingLimit below it or none, or set action to FailClosed"
)

var invalidBudgets = map[string]invalid{
	"no id":                         {`{` + aBudget + `, ` + twoMembers + `}`, "spec.id", "Required value"},
	"an empty id":                   {budgetID(``), "spec.id", notAnID},
	"an id with a large letter":     {budgetID(`acme/Checkout`), "spec.id", notAnID},
	"an id with an empty part":      {budgetID(`acme//checkout`), "spec.id", notAnID},
	"an id that ends in a slash":    {budgetID(`acme/`), "spec.id", notAnID},
	"an id that begins with one":    {budgetID(`/acme`), "spec.id", notAnID},
	"an id that ends in a dash":     {budgetID(`acme-`), "spec.id", notAnID},
	"an id of 129 characters":       {budgetID(strings.Repeat("a", 129)), "spec.id", "may not be more than 128 bytes"},
	"no rate":                       {`{` + anID + `, ` + twoMembers + `}`, "spec.rate", "Required value"},
	"a rate without a limit":        {budgetRate(`window: 1s`), "spec.rate.limit", "Required value"},
	"a rate of nothing":             {budgetRate(`limit: 0, window: 1s`), "spec.rate.limit", "should be greater than or equal to 1"},
	"a rate of too much":            {budgetRate(`limit: 1000000000001, window: 1s`), "spec.rate.limit", "should be less than or equal to 1000000000000"},
	"a rate without a window":       {budgetRate(`limit: 1`), "spec.rate.window", "Required value"},
	"a window below 100ms":          {budgetRate(`limit: 1, window: 99ms`), "spec.rate.window", notADuration},
	"a window over 31 days":         {budgetRate(`limit: 1, window: 745h`), "spec.rate.window", notADuration},
	"no members":                    {`{` + anID + `, ` + aBudget + `}`, "spec.members", "Required value"},
	"members that are nobody":       {budgetMembers(`[]`, ``), "spec.members", "should have at least 1 items"},
	"65 members":                    {budgetMembers(repeat(65, `{name: m%d}`), ``), "spec.members", "must have at most 64 items"},
	"a member twice":                {budgetMembers(`[{name: a}, {name: b}, {name: a}]`, ``), "spec.members[2]", "Duplicate value"},
	"a member without a name":       {budgetMembers(`[{weight: 1}]`, ``), "spec.members[0].name", "Required value"},
	"a member that is not a label":  {budgetMembers(`[{name: eu_west}]`, ``), "spec.members[0].name", notALabel},
	"a member of 64 characters":     {budgetMembers(`[{name: `+strings.Repeat("a", 64)+`}]`, ``), "spec.members[0].name", "may not be more than 63 bytes"},
	"a member without weight":       {member(`weight: 0`), "spec.members[0].weight", "should be greater than or equal to 1"},
	"a member that is too heavy":    {member(`weight: 1001`), "spec.members[0].weight", "should be less than or equal to 1000"},
	"a nominal below nothing":       {member(`nominal: -1`), "spec.members[0].nominal", "should be greater than or equal to 0"},
	"a nominal above the limit":     {member(`nominal: 101`), "spec.members", "lower some of them, or raise rate.limit"},
	"nominals above the limit":      {budgetMembers(`[{name: a, nominal: 50}, {name: b, nominal: 51}]`, ``), "spec.members", "the nominal of all members add up to more than rate.limit"},
	"borrowing below nothing":       {member(`borrowingLimit: -1`), "spec.members[0].borrowingLimit", "should be greater than or equal to 0"},
	"borrowing too much":            {member(`borrowingLimit: 1000000000001`), "spec.members[0].borrowingLimit", "should be less than or equal to 1000000000000"},
	"lending below nothing":         {member(`lendingLimit: -1`), "spec.members[0].lendingLimit", "should be greater than or equal to 0"},
	"lending more than nominal":     {member(`nominal: 5, lendingLimit: 6`), "spec.members[0].lendingLimit", "lower it to at most nominal, or raise nominal"},
	"lending of no nominal":         {member(`lendingLimit: 1`), "spec.members[0].lendingLimit", "lower it to at most nominal"},
	"an unknown allocation":         {budgetWith(`allocation: Fair`), "spec.allocation", `supported values: "FairShare", "FirstCome", "Static"`},
	"a hub without an endpoint":     {budgetHub(`secretRef: {name: a}`), "spec.hub.endpoint", "Required value"},
	"a hub that is a URL":           {budgetHub(`endpoint: "https://hub:15040", secretRef: {name: a}`), "spec.hub.endpoint", "without a scheme"},
	"a hub without a port":          {budgetHub(`endpoint: hub, secretRef: {name: a}`), "spec.hub.endpoint", "not host:port"},
	"a hub without credentials":     {budgetHub(`endpoint: "hub:15040"`), "spec.hub.secretRef", "Required value"},
	"a hub with a nameless one":     {budgetHub(`endpoint: "hub:15040", secretRef: {}`), "spec.hub.secretRef.name", "Required value"},
	"a hub and blocks":              {budgetWith(aHub + `, coordinator: {blockPercent: 10}`), "spec.coordinator", "remove coordinator, or remove hub"},
	"a hub and a Redis":             {budgetWith(aHub + `, coordinator: {type: Redis, redis: {address: "r:6379"}}`), "spec.coordinator", "remove coordinator, or remove hub"},
	"a hub and a Postgres":          {budgetWith(aHub + `, coordinator: {type: Postgres, postgres: {address: "p:5432", database: weir}}`), "spec.coordinator", "remove coordinator, or remove hub"},
	"an unknown coordinator":        {budgetCoordinator(`type: Controller`), "spec.coordinator.type", `supported values: "Kubernetes", "Redis", "Postgres"`},
	"blocks of nothing":             {budgetCoordinator(`blockPercent: 0`), "spec.coordinator.blockPercent", "should be greater than or equal to 1"},
	"blocks of more than all":       {budgetCoordinator(`blockPercent: 101`), "spec.coordinator.blockPercent", "should be less than or equal to 100"},
	"blocks of a Redis":             {budgetCoordinator(`type: Redis, blockPercent: 10, redis: {address: "r:6379"}`), "spec.coordinator.blockPercent", "remove it, or set type to Kubernetes"},
	"a Redis without servers":       {budgetCoordinator(`type: Redis`), "spec.coordinator.redis", "set redis.address to host:port, or redis.sentinel, redis.cluster or redis.rest"},
	"servers without a Redis":       {budgetCoordinator(`redis: {address: "r:6379"}`), "spec.coordinator.redis", "remove it, or set type to Redis"},
	"a Postgres without a server":   {budgetCoordinator(`type: Postgres`), "spec.coordinator.postgres", "set postgres.address and postgres.database"},
	"a server without a Postgres":   {budgetCoordinator(`postgres: {address: "p:5432", database: weir}`), "spec.coordinator.postgres", "remove it, or set type to Postgres"},
	"a Redis with two addresses":    {budgetCoordinator(`type: Redis, redis: {address: "r:1", cluster: {addresses: ["r:1"]}}`), "spec.coordinator.redis", "set exactly one of address"},
	"an unknown escrow":             {budgetEscrow(`type: Postgres`), "spec.escrow.type", `supported values: "Controller", "Redis"`},
	"an escrow of no Redis":         {budgetEscrow(`type: Redis`), "spec.escrow.redis", "set redis.address to host:port"},
	"a Redis that is not an escrow": {budgetEscrow(`redis: {address: "r:6379"}`), "spec.escrow.redis", "remove it, or set type to Redis"},
	"an unknown batch":              {budgetWith(`batch: {type: Predictive}`), "spec.batch.type", `supported values: "Adaptive", "Fixed"`},
	"a batch of nothing":            {budgetWith(`batch: {size: 0}`), "spec.batch.size", "should be greater than or equal to 1"},
	"a batch of too much":           {budgetWith(`batch: {size: 1000001}`), "spec.batch.size", "should be less than or equal to 1000000"},
	"an unknown outage action":      {budgetWith(`onCoordinatorOutage: {action: LocalOnly}`), "spec.onCoordinatorOutage.action", `supported values: "FailClosed", "RegionalOnly", "Nominal"`},
	"an outage on no nominal":       {budgetWith(`onCoordinatorOutage: {action: Nominal}`), "spec.onCoordinatorOutage.action", keepsNothing},
	"an outage on what was lent": {
		budgetMembers(`[{name: a, nominal: 10, lendingLimit: 10}, {name: b}]`, `onCoordinatorOutage: {action: Nominal}`), "spec.onCoordinatorOutage.action", keepsNothing,
	},
}

func TestInvalidBudgetsAreRefused(t *testing.T) {
	for name, tc := range invalidBudgets {
		t.Run(name, func(t *testing.T) {
			requireRefused(t, newBudget(t, tc.spec), tc)
		})
	}
}
