package v1alpha1_test

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/api/meta"
	"sigs.k8s.io/controller-runtime/pkg/client"

	weirv1alpha1 "github.com/weir-dev/weir/api/v1alpha1"
)

func TestUpdatesOfBudgets(t *testing.T) {
	const (
		single   = `type: Redis, redis: {address: "redis:6379"}`
		service  = `type: Redis, redis: {rest: {url: "https://a"}, secretRef: {name: redis}}`
		sentinel = `type: Redis, redis: {sentinel: {primary: a, addresses: ["s:1", "t:1"]}}`
		postgres = `type: Postgres, postgres: {address: "pg:5432", database: weir}`
	)
	in := budgetCoordinator
	cases := map[string]struct {
		from, to string
		want     string // field of the only error; empty: accepted
	}{
		"the id changes":                         {budgetID(`a`), budgetID(`b`), "spec.id"},
		"the limit moves":                        {budgetRate(`limit: 1, window: 1s`), budgetRate(`limit: 2, window: 1s`), ""},
		"the window changes":                     {budgetRate(`limit: 1, window: 1s`), budgetRate(`limit: 1, window: 1m`), ""},
		"a member joins":                         {member(``), budgetWith(``), ""},
		"a member leaves":                        {budgetWith(``), member(``), ""},
		"a member weighs more":                   {member(``), member(`weight: 2`), ""},
		"the limit falls below the nominals":     {budgetMembers(`[{name: a, nominal: 100}]`, ``), `{` + anID + `, rate: {limit: 99, window: 1s}, members: [{name: a, nominal: 100}]}`, "spec.members"},
		"the allocation changes":                 {budgetWith(``), budgetWith(`allocation: Static`), ""},
		"the escrow becomes Redis":               {budgetWith(``), budgetEscrow(`type: Redis, redis: {address: "r:6379"}`), ""},
		"the batch becomes fixed":                {budgetWith(``), budgetWith(`batch: {type: Fixed, size: 100}`), ""},
		"the outage action changes":              {budgetWith(``), budgetWith(`onCoordinatorOutage: {action: RegionalOnly}`), ""},
		"the hub moves":                          {budgetWith(aHub), budgetHub(`endpoint: "hub2:15040", secretRef: {name: new}`), ""},
		"a member becomes the hub":               {budgetWith(aHub), budgetWith(``), ""},
		"the hub becomes a member":               {budgetWith(``), budgetWith(aHub), ""},
		"a member goes to a Redis":               {budgetWith(aHub), in(single), ""},
		"from a Redis to a hub":                  {in(single), budgetWith(aHub), ""},
		"the blocks get smaller":                 {in(`blockPercent: 10`), in(`blockPercent: 1`), ""},
		"the default coordinator is written out": {budgetWith(``), in(`type: Kubernetes`), ""},
		"the coordinator becomes Redis":          {budgetWith(``), in(single), "spec.coordinator"},
		"the coordinator was Redis":              {in(single), budgetWith(``), "spec.coordinator"},
		"Redis becomes Postgres":                 {in(single), in(postgres), "spec.coordinator"},
		"Redis moves":                            {in(single), in(`type: Redis, redis: {address: "redis:6380"}`), "spec.coordinator"},
		"Redis gets Sentinels":                   {in(single), in(sentinel), "spec.coordinator"},
		"Redis loses its Sentinels":              {in(sentinel), in(single), "spec.coordinator"},
		"Redis is reached over HTTP":             {in(single), in(service), "spec.coordinator"},
		"the service moves":                      {in(service), in(strings.ReplaceAll(service, "//a", "//b")), "spec.coordinator"},
		"Redis becomes a cluster":                {in(single), in(`type: Redis, redis: {cluster: {addresses: ["redis:6379"]}}`), "spec.coordinator"},
		"a cluster moves":                        {in(`type: Redis, redis: {cluster: {addresses: ["a:1"]}}`), in(`type: Redis, redis: {cluster: {addresses: ["b:1"]}}`), "spec.coordinator"},
		"the primary is another":                 {in(sentinel), in(`type: Redis, redis: {sentinel: {primary: b, addresses: ["s:1", "t:1"]}}`), "spec.coordinator"},
		"the Sentinels are others":               {in(sentinel), in(`type: Redis, redis: {sentinel: {primary: a, addresses: ["s:1", "u:1"]}}`), "spec.coordinator"},
		"Redis gets credentials":                 {in(single), in(`type: Redis, redis: {address: "redis:6379", tls: Enabled, secretRef: {name: redis}}`), ""},
		"Postgres moves":                         {in(postgres), in(`type: Postgres, postgres: {address: "pg2:5432", database: weir}`), "spec.coordinator"},
		"Postgres has another database":          {in(postgres), in(`type: Postgres, postgres: {address: "pg:5432", database: other}`), "spec.coordinator"},
		"Postgres gets credentials":              {in(postgres), in(`type: Postgres, postgres: {address: "pg:5432", database: weir, tls: Enabled, secretRef: {name: pg}}`), ""},
		"the members are removed":                {budgetWith(``), `{` + anID + `, ` + aBudget + `}`, "spec.members"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			requireUpdate(t, newBudget(t, tc.from), newBudget(t, tc.to), tc.want)
		})
	}
}

func TestNewBudgetWaitsForTheController(t *testing.T) {
	budget := newBudget(t, budgetWith(``))
	if err := server.Create(t.Context(), budget); err != nil {
		t.Fatal(err)
	}
	var typed weirv1alpha1.FederatedBudget
	if err := server.Get(t.Context(), client.ObjectKeyFromObject(budget), &typed); err != nil {
		t.Fatal(err)
	}
	for _, kind := range []string{weirv1alpha1.ReadyCondition, weirv1alpha1.AcceptedCondition, weirv1alpha1.ConnectedCondition} {
		c := meta.FindStatusCondition(typed.Status.Conditions, kind)
		if c == nil || c.Status != "Unknown" || c.Reason != weirv1alpha1.PendingReason {
			t.Errorf("condition %s = %+v, want Unknown, Pending", kind, c)
		}
	}
}

func TestBudgetsAreSelectedByID(t *testing.T) {
	one, other := newBudget(t, budgetID(`selected/one`)), newBudget(t, budgetID(`selected/other`))
	for _, budget := range []client.Object{one, other} {
		if err := server.Create(t.Context(), budget); err != nil {
			t.Fatal(err)
		}
	}
	var found weirv1alpha1.FederatedBudgetList
	if err := server.List(t.Context(), &found, client.MatchingFields{"spec.id": "selected/one"}); err != nil {
		t.Fatal(err)
	}
	if len(found.Items) != 1 || found.Items[0].Name != one.GetName() {
		t.Errorf("spec.id=selected/one selects %d budgets, want %s alone", len(found.Items), one.GetName())
	}
}
