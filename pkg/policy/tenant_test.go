package policy_test

import (
	"testing"

	"github.com/weir-dev/weir/pkg/policy"
	"github.com/weir-dev/weir/pkg/store"
)

func fair(tenant policy.KeyPart, declared ...string) func(*policy.Policy) {
	return func(p *policy.Policy) {
		f := &policy.Fairness{Tenant: tenant, DefaultWeight: 1}
		for i, name := range declared {
			f.Weights = append(f.Weights, policy.Weight{Tenant: name, Weight: int64(i + 2)})
		}
		p.Limits[0].Fairness = f
	}
}

var byTenant = policy.KeyPart{Type: policy.HeaderKey, Header: "x-tenant"}

func TestTenant(t *testing.T) {
	l := limitOf(t, fair(byTenant, "gold"))
	tenant := func(line string) string { return l.Tenant(view(request(line))) }
	if got, want := tenant("GET / X-Tenant:gold"), store.HashValue("gold"); got != want {
		t.Errorf("a declared tenant is %s, want %s", got, want)
	}
	if got, want := tenant("GET / X-Tenant:tin"), store.HashValue("tin"); got != want {
		t.Errorf("another tenant is %s, want %s", got, want)
	}
	nobody := tenant("GET /")
	if nobody == "" || nobody != tenant("POST /x X-Tenant:") {
		t.Error("requests without a tenant are several tenants")
	}
	if got := limitOf(t).Tenant(view(request("GET / X-Tenant:gold"))); got != "" {
		t.Errorf("a limit without fairness charges %q", got)
	}
}

// TestTheCoreKnowsTenantsByTheirHash checks that the weight declared is that of the
// requests which name the tenant.
func TestTheCoreKnowsTenantsByTheirHash(t *testing.T) {
	l := limitOf(t, fair(byTenant, "gold", "silver", "bronze"))
	params := l.Limit.Params(l.Policy)
	if err := params.Validate(); err != nil {
		t.Fatal(err)
	}
	weights := map[string]int64{}
	for _, w := range params.Fairness.Weights {
		weights[w.Tenant] = w.Weight
	}
	for name, want := range map[string]int64{"gold": 2, "silver": 3, "bronze": 4} {
		if got := weights[l.Tenant(view(request("GET / X-Tenant:"+name)))]; got != want {
			t.Errorf("%s weighs %d, want %d", name, got, want)
		}
	}
}

func TestDeclaredTenantsDoNotAllocate(t *testing.T) {
	l := limitOf(t, fair(byTenant, "gold"))
	for _, line := range []string{"GET / X-Tenant:gold", "GET /"} {
		r := view(request(line))
		if n := testing.AllocsPerRun(100, func() { l.Tenant(r) }); n > 0 {
			t.Errorf("%q: %v allocations", line, n)
		}
	}
}
