package v1alpha1_test

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/api/meta"
	"sigs.k8s.io/controller-runtime/pkg/client"

	weirv1alpha1 "github.com/weir-dev/weir/api/v1alpha1"
)

func TestUpdatesOfPools(t *testing.T) {
	const (
		single   = `type: Redis, redis: {address: "redis:6379"}`
		service  = `type: Redis, redis: {rest: {url: "https://a"}, secretRef: {name: redis}}`
		sentinel = `type: Redis, redis: {sentinel: {primary: a, addresses: ["s:1", "t:1"]}}`
		postgres = `type: Postgres, postgres: {address: "pg:5432", database: weir}`
	)
	cases := map[string]struct {
		from, to string
		want     string // field of the only error; empty: accepted
	}{
		"Enforce becomes Shadow":                 {poolWith(``), poolWith(`mode: Shadow`), ""},
		"the limit moves":                        {poolLimit(`max: 10`), poolLimit(`min: 5, max: 20`), ""},
		"the algorithm changes":                  {poolAlgorithm(`type: Fixed`), poolAlgorithm(`type: AIMD`), ""},
		"the algorithm changes, its knobs stay":  {poolAlgorithm(`smoothingPercent: 5`), poolAlgorithm(`type: AIMD, smoothingPercent: 5`), "spec.algorithm.smoothingPercent"},
		"the lease is raised":                    {heartbeat(`leaseTTL: 2s`), heartbeat(`leaseTTL: 2001ms`), ""},
		"the lease is written otherwise":         {heartbeat(`leaseTTL: 60s`), heartbeat(`leaseTTL: 1m`), ""},
		"the lease is lowered":                   {heartbeat(`leaseTTL: 2s`), heartbeat(`leaseTTL: 1999ms`), "spec.heartbeat.leaseTTL"},
		"the usual lease is lowered":             {poolWith(``), heartbeat(`leaseTTL: 1500ms`), "spec.heartbeat.leaseTTL"},
		"the lease goes back to the usual":       {heartbeat(`leaseTTL: 3s`), poolWith(``), "spec.heartbeat.leaseTTL"},
		"the interval is lowered":                {heartbeat(`interval: 1s`), heartbeat(`interval: 100ms`), ""},
		"the default coordinator is written out": {poolWith(``), coordinator(`type: Controller`), ""},
		"the coordinator becomes Redis":          {poolWith(``), coordinator(single), "spec.coordinator"},
		"the coordinator was Redis":              {coordinator(single), poolWith(``), "spec.coordinator"},
		"Redis becomes Postgres":                 {coordinator(single), coordinator(postgres), "spec.coordinator"},
		"Redis moves":                            {coordinator(single), coordinator(`type: Redis, redis: {address: "redis:6380"}`), "spec.coordinator"},
		"Redis gets Sentinels":                   {coordinator(single), coordinator(sentinel), "spec.coordinator"},
		"Redis loses its Sentinels":              {coordinator(sentinel), coordinator(single), "spec.coordinator"},
		"Redis is reached over HTTP":             {coordinator(single), coordinator(service), "spec.coordinator"},
		"the service moves":                      {coordinator(service), coordinator(strings.ReplaceAll(service, "//a", "//b")), "spec.coordinator"},
		"the service's token moves":              {coordinator(service), coordinator(strings.ReplaceAll(service, "name: redis", "name: other")), ""},
		"Redis becomes a cluster":                {coordinator(single), coordinator(`type: Redis, redis: {cluster: {addresses: ["redis:6379"]}}`), "spec.coordinator"},
		"a cluster moves":                        {coordinator(`type: Redis, redis: {cluster: {addresses: ["a:1"]}}`), coordinator(`type: Redis, redis: {cluster: {addresses: ["b:1"]}}`), "spec.coordinator"},
		"the primary is another":                 {coordinator(sentinel), coordinator(`type: Redis, redis: {sentinel: {primary: b, addresses: ["s:1", "t:1"]}}`), "spec.coordinator"},
		"the Sentinels are others":               {coordinator(sentinel), coordinator(`type: Redis, redis: {sentinel: {primary: a, addresses: ["s:1", "u:1"]}}`), "spec.coordinator"},
		"the Sentinels are named in turn":        {coordinator(sentinel), coordinator(`type: Redis, redis: {sentinel: {primary: a, addresses: ["t:1", "s:1"]}}`), ""},
		"Redis gets credentials":                 {coordinator(single), coordinator(`type: Redis, redis: {address: "redis:6379", tls: Enabled, secretRef: {name: redis}}`), ""},
		"Postgres moves":                         {coordinator(postgres), coordinator(`type: Postgres, postgres: {address: "pg2:5432", database: weir}`), "spec.coordinator"},
		"Postgres has another database":          {coordinator(postgres), coordinator(`type: Postgres, postgres: {address: "pg:5432", database: other}`), "spec.coordinator"},
		"Postgres gets credentials":              {coordinator(postgres), coordinator(`type: Postgres, postgres: {address: "pg:5432", database: weir, tls: Enabled, secretRef: {name: pg}}`), ""},
		"the selector changes":                   {poolWith(``), `{podSelector: {matchLabels: {app: a}}, limit: {max: 100}}`, ""},
		"the limit is removed":                   {poolWith(``), `{` + selectAll + `}`, "spec.limit"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			requireUpdate(t, newPool(t, tc.from), newPool(t, tc.to), tc.want)
		})
	}
}

func TestNewPoolWaitsForTheController(t *testing.T) {
	pool := newPool(t, poolWith(``))
	if err := server.Create(t.Context(), pool); err != nil {
		t.Fatal(err)
	}
	var typed weirv1alpha1.ConcurrencyPool
	if err := server.Get(t.Context(), client.ObjectKeyFromObject(pool), &typed); err != nil {
		t.Fatal(err)
	}
	for _, kind := range []string{weirv1alpha1.ReadyCondition, weirv1alpha1.AcceptedCondition, weirv1alpha1.ProgrammedCondition} {
		c := meta.FindStatusCondition(typed.Status.Conditions, kind)
		if c == nil || c.Status != "Unknown" || c.Reason != weirv1alpha1.PendingReason {
			t.Errorf("condition %s = %+v, want Unknown, Pending", kind, c)
		}
	}
}
