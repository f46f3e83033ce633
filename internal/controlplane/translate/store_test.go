package translate_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/weir-dev/weir/api/v1alpha1"
	"github.com/weir-dev/weir/internal/controlplane/translate"
	"github.com/weir-dev/weir/pkg/limiter"
	"github.com/weir-dev/weir/pkg/policy"
)

// TestServers: a name without a dot is another server in another namespace, and one server
// for all that name it from the same one.
func TestServers(t *testing.T) {
	for name, tc := range map[string]struct {
		redis, want string // YAML, and addresses
	}{
		"a name without a dot":       {`address: "redis:6379"`, "redis.shop.svc:6379"},
		"a Service of a namespace":   {`address: "redis.cart:6379"`, "redis.cart:6379"},
		"a complete Service":         {`address: "redis.cart.svc:6379"`, "redis.cart.svc:6379"},
		"with the cluster's domain":  {`address: "redis.cart.svc.cluster.local:6379"`, "redis.cart.svc.cluster.local:6379"},
		"a pod of a Service":         {`address: "redis-0.redis.cart.svc:6379"`, "redis-0.redis.cart.svc:6379"},
		"a name outside the cluster": {`address: "redis.example.com:6379"`, "redis.example.com:6379"},
		"an address":                 {`address: "192.0.2.7:6379"`, "192.0.2.7:6379"},
		"an IPv6 address":            {`address: "[fd00::1]:6379"`, "[fd00::1]:6379"},
		"the pod itself":             {`address: "localhost:6379"`, "localhost:6379"},
		"Sentinels":                  {`sentinel: {primary: main, addresses: ["a:1", "192.0.2.7:2", "b:3"]}`, "a.shop.svc:1,192.0.2.7:2,b.shop.svc:3"},
		"a service":                  {`rest: {url: "https://a.example.com/redis"}, secretRef: {name: r}`, "https://a.example.com/redis"},
		"a service of the cluster":   {`rest: {url: "http://srh:8080"}, secretRef: {name: r}`, "http://srh.shop.svc:8080"},
		"a service by IPv6 address":  {`rest: {url: "https://[fd00::1]:8443"}, secretRef: {name: r}`, "https://[fd00::1]:8443"},
		"nodes of a cluster":         {`cluster: {addresses: ["a:1", "b.cart:2"]}`, "a.shop.svc:1,b.cart:2"},
	} {
		t.Run(name, func(t *testing.T) {
			in := func(namespace string) policy.Store {
				return translate.Wanted(defaulted(t, []byte(`{metadata: {name: p, namespace: `+namespace+`}, spec: {podSelector: {}, store: {type: Redis, redis: {`+tc.redis+`}}, limits: [{name: all, rates: [{limit: 1, window: 1s}]}]}}`)))
			}
			here, there := in("shop"), in("cart")
			if here.Address != tc.want {
				t.Errorf("it is dialled as %s, want %s", here.Address, tc.want)
			}
			if short := strings.Contains(tc.want, ".shop."); short == (here.Server() == there.Server()) {
				t.Errorf("%s in shop and %s in cart are one server: %t", here.Server(), there.Server(), short)
			}
		})
	}
	postgres := defaulted(t, []byte(`{metadata: {name: p, namespace: shop}, spec: {podSelector: {}, store: {type: Postgres, postgres: {address: "db:5432", database: weir}}, limits: [{name: all, rates: [{limit: 1, window: 1s}]}]}}`))
	if got := translate.Wanted(postgres).Address; got != "db.shop.svc:5432" {
		t.Errorf("Postgres is dialled as %s", got)
	}
	if got := translate.Wanted(&v1alpha1.RateLimitPolicy{}).Address; got != "" {
		t.Errorf("the controller's own store has the address %q", got)
	}
}

func TestRetention(t *testing.T) {
	durable, resuming := limiter.Retention{Durable: true}, limiter.Retention{Durable: true, Resume: true}
	const (
		short    = `rates: [{limit: 5, window: 1s}, {limit: 9, window: 1m}]`
		long     = `rates: [{limit: 5, window: 1s}, {limit: 9, window: 60001ms}]`
		month    = `algorithm: Quota, rates: [{limit: 5, cadence: Month}]`
		override = short + `, key: {parts: [{type: Path}]}, overrides: [{values: [{parts: [/a]}], rates: [{limit: 5, window: 1h}]}]`
		bucket   = `algorithm: TokenBucket, rates: [{limit: 5000, window: 1h}]`
		budget   = `scope: Federated, budgetRef: {name: world}`
	)
	yearly := defaultedBudget(t, []byte(`{metadata: {name: world, namespace: shop}, spec: {id: acme/world, rate: {limit: 100, window: 24h}, members: [{name: eu-west}]}}`))
	for name, tc := range map[string]struct {
		store, limit string // YAML
		want         limiter.Retention
	}{
		"windows up to a minute":      {``, short, limiter.Retention{}},
		"a window over a minute":      {``, long, durable},
		"a window of an override":     {``, override, durable},
		"a calendar":                  {``, month, durable},
		"what flows in over an hour":  {``, bucket, durable},
		"Auto is the default":         {`memory: Auto`, long, durable},
		"in Redis":                    {`type: Redis, redis: {address: "r:6379"}`, long, durable},
		"Durable keeps short windows": {`memory: Durable`, short, durable},
		"Volatile keeps no long ones": {`memory: Volatile`, long, limiter.Retention{}},
		"Resume":                      {`onMemoryLoss: Resume`, long, resuming},
		"Resume of what is not kept":  {`onMemoryLoss: Resume`, short, limiter.Retention{}},
		"Resume of short ones":        {`memory: Durable, onMemoryLoss: Resume`, short, resuming},
		"a budget is kept by its own": {`memory: Durable`, budget, limiter.Retention{}},
	} {
		t.Run(name, func(t *testing.T) {
			p := defaulted(t, []byte(`{metadata: {name: p, namespace: shop}, spec: {podSelector: {}, store: {`+tc.store+`}, limits: [{name: all, `+tc.limit+`}]}}`))
			translated, err := translate.Policy(p, counting(yearly))
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, translated.Limits[0].Retention); diff != "" {
				t.Errorf("counters are kept by (-want +got):\n%s", diff)
			}
		})
	}
}

// TestAccess: sidecars that did not know where a store is do not learn it because another one
// is wanted.
func TestAccess(t *testing.T) {
	redis := func(address v1alpha1.HostPort) v1alpha1.Store {
		return v1alpha1.Store{Type: v1alpha1.RedisStoreType, Redis: &v1alpha1.RedisStore{Address: address}}
	}
	controller := v1alpha1.Store{Type: v1alpha1.ControllerStore}
	const direct, through = v1alpha1.DirectAccess, v1alpha1.GatewayAccess
	for name, tc := range map[string]struct {
		spec   v1alpha1.Store
		access v1alpha1.StoreAccess
		status *v1alpha1.StoreStatus
		want   bool
	}{
		"the controller":                     {controller, direct, nil, false},
		"before the first status":            {redis("a.b:1"), through, nil, true},
		"before the first status, direct":    {redis("a.b:1"), direct, nil, false},
		"it is edited to a gateway":          {redis("a.b:1"), through, &v1alpha1.StoreStatus{Active: redis("a.b:1")}, true},
		"it is edited to be direct":          {redis("a.b:1"), direct, &v1alpha1.StoreStatus{Active: redis("a.b:1"), Access: through}, false},
		"another one is wanted directly":     {redis("c.d:1"), direct, &v1alpha1.StoreStatus{Active: redis("a.b:1"), Access: through}, true},
		"the controller is wanted":           {controller, direct, &v1alpha1.StoreStatus{Active: redis("a.b:1"), Access: through}, true},
		"another one is wanted by a gateway": {redis("c.d:1"), through, &v1alpha1.StoreStatus{Active: redis("a.b:1")}, false},
		"the controller is left":             {redis("c.d:1"), through, &v1alpha1.StoreStatus{Active: controller}, false},
	} {
		t.Run(name, func(t *testing.T) {
			p := &v1alpha1.RateLimitPolicy{}
			p.Spec.Store.Store, p.Spec.Store.Access, p.Status.Store = tc.spec, tc.access, tc.status
			if of, _, _ := translate.Serving(p); of.Gateway != tc.want {
				t.Errorf("sidecars reach it through the controller: %t, want %t", of.Gateway, tc.want)
			}
			if of := translate.Wanted(p); of.Gateway != (tc.access == through) {
				t.Errorf("they are to reach it through the controller: %t", of.Gateway)
			}
		})
	}
}
