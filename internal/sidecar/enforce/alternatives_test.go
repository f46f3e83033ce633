package enforce_test

import (
	"context"
	"testing"
	"time"

	"github.com/weir-dev/weir/internal/sidecar/count"
	"github.com/weir-dev/weir/internal/sidecar/enforce"
	"github.com/weir-dev/weir/pkg/limiter"
	"github.com/weir-dev/weir/pkg/policy"
)

// anyOf returns policy checkout with limits that are alternatives, in their order.
func anyOf(limits ...policy.Limit) policy.Policy {
	p := policyOf(limits...)
	var names []string
	for _, l := range limits {
		names = append(names, l.Name)
	}
	p.AnyOf = [][]string{names}
	return p
}

// check compares what the limits counted: units admitted and refused.
func check(t *testing.T, e *enforce.Enforcer, want map[string][2]int64) {
	t.Helper()
	for limit, want := range want {
		if got := counted(e, limit); got.Admitted != want[0] || got.Refused != want[1] {
			t.Errorf("limit %s counted %d admitted and %d refused, want %d and %d", limit, got.Admitted, got.Refused, want[0], want[1])
		}
	}
}

// TestOneAlternativeIsEnough: the first that admits a request is charged and no other, and only
// a request that all refuse counts as refused.
func TestOneAlternativeIsEnough(t *testing.T) {
	for _, mode := range []policy.ConsistencyMode{policy.Leased, policy.Strict} {
		t.Run(string(mode), func(t *testing.T) {
			e := newEnforcer(t, newStore(frozen))
			p := anyOf(limitOf("own", 3, byTenant(policy.Shared)), limitOf("reserve", 5))
			if mode == policy.Strict {
				p.Consistency = policy.Consistency{Mode: policy.Strict}
			}
			apply(t, e, p)
			if got := admit(t, e, 6, "/ X-Tenant:gold"); got != 6 {
				t.Errorf("admitted %d of gold, want its 3 and 3 of the reserve", got)
			}
			check(t, e, map[string][2]int64{"own": {3, 0}, "reserve": {3, 0}})
			if got := admit(t, e, 10, "/ X-Tenant:blue"); got != 5 {
				t.Errorf("admitted %d of blue, want its 3 and the 2 that are left of the reserve", got)
			}
			check(t, e, map[string][2]int64{"own": {6, 5}, "reserve": {5, 5}})
		})
	}
}

// TestAnAlternativeThatDoesNotMatchIsLeftOut: without one that matches a request passes.
func TestAnAlternativeThatDoesNotMatchIsLeftOut(t *testing.T) {
	e := newEnforcer(t, newStore(frozen))
	apply(t, e, anyOf(limitOf("a", 3, under("/a")), limitOf("keyed", 2, under("/a"), byTenant(policy.Skip))))
	if got := admit(t, e, 10, "/"); got != 10 {
		t.Errorf("admitted %d of 10 that no limit matches", got)
	}
	if got := admit(t, e, 10, "/a"); got != 3 {
		t.Errorf("admitted %d without the key, want the 3 of limit a", got)
	}
	if got := admit(t, e, 10, "/a X-Tenant:gold"); got != 2 {
		t.Errorf("admitted %d with the key, want the 2 that it has", got)
	}
}

// TestAlternativesGiveBackWhenAnotherLimitRefuses, and are asked once the others of the policy
// admit.
func TestAlternativesGiveBackWhenAnotherLimitRefuses(t *testing.T) {
	e := newEnforcer(t, newStore(frozen))
	p := anyOf(limitOf("own", 3), limitOf("reserve", 5))
	p.Limits = append(p.Limits, limitOf("few", 2, under("/few")))
	apply(t, e, p)
	if got := admit(t, e, 10, "/few"); got != 2 {
		t.Errorf("admitted %d below /few, want 2", got)
	}
	check(t, e, map[string][2]int64{"own": {2, 0}, "reserve": {0, 0}, "few": {2, 8}})
	if got := admit(t, e, 10, "/"); got != 6 {
		t.Errorf("admitted %d more, want the 6 that are left of both", got)
	}
}

// TestTheRefusalOfAlternativesIsThatOfTheSoonest: an hour's limit and a minute's are used up.
func TestTheRefusalOfAlternativesIsThatOfTheSoonest(t *testing.T) {
	e := newEnforcer(t, newStore(frozen))
	minute := limitOf("minute", 1)
	minute.Rates[0].Window = 60 * limiter.Second
	rejecting := limitOf("keyed", 1, byTenant(policy.Reject))
	apply(t, e, anyOf(rejecting, limitOf("hour", 1), minute))
	if got := admit(t, e, 2, "/"); got != 2 {
		t.Fatalf("admitted %d, want 2", got)
	}
	v, err := e.Decide(context.Background(), get("/"))
	if err != nil || v.Allowed || v.Refusal.Limit.Name != "minute" || v.Refusal.Decision.RetryAfter > time.Minute {
		t.Errorf("got %+v, %v, want the refusal of limit minute", v.Refusal, err)
	}
	for _, l := range e.Limits() {
		want := map[string]count.Outcome{"keyed": count.KeyMissing, "hour": count.Refused, "minute": count.Refused}[l.Limit]
		if n := l.Counts.Requests(want); n != 1 {
			t.Errorf("limit %s counted %d requests as %v, want the one that was refused", l.Limit, n, want)
		}
	}
}

// TestAlternativesInShadowRefuseNothing, and count as they would refuse.
func TestAlternativesInShadowRefuseNothing(t *testing.T) {
	e := newEnforcer(t, newStore(frozen))
	p := anyOf(limitOf("own", 3), limitOf("reserve", 5))
	p.Mode = policy.Shadow
	apply(t, e, p)
	if got := admit(t, e, 10, "/"); got != 10 {
		t.Errorf("let %d through, want 10", got)
	}
	check(t, e, map[string][2]int64{"own": {3, 2}, "reserve": {5, 2}})
}

// TestOneAlternativeAdmitsAllDescriptorsOfACall: what the first admitted of a call that it
// refuses in part goes back.
func TestOneAlternativeAdmitsAllDescriptorsOfACall(t *testing.T) {
	e := newEnforcer(t, newStore(frozen))
	apply(t, e, anyOf(limitOf("own", 3, each("user", policy.Skip)), limitOf("reserve", 5)))
	call := func(hits int64) bool {
		return rule(t, e, descriptor(hits, "user=a"), descriptor(2, "user=b")).Allowed
	}
	for i, step := range []struct {
		hits    int64
		allowed bool
		want    map[string][2]int64
	}{
		{1, true, map[string][2]int64{"own": {3, 0}, "reserve": {0, 0}}},
		{1, true, map[string][2]int64{"own": {3, 0}, "reserve": {2, 0}}}, // user b has 1 left
		{3, true, map[string][2]int64{"own": {3, 0}, "reserve": {5, 0}}},
		{1, false, map[string][2]int64{"own": {3, 2}, "reserve": {5, 2}}},
	} {
		if got := call(step.hits); got != step.allowed {
			t.Errorf("call %d is allowed: %v", i, got)
		}
		check(t, e, step.want)
	}
	if got := left(t, e, "own", "a"); got != 2 {
		t.Errorf("user a has %d left of its own, want 2: the rest was given back", got)
	}
}
