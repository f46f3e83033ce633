package enforce_test

import (
	"context"
	"errors"
	"testing"

	"github.com/weir-dev/weir/internal/sidecar/count"
	"github.com/weir-dev/weir/internal/sidecar/enforce"
	"github.com/weir-dev/weir/pkg/limiter"
	"github.com/weir-dev/weir/pkg/policy"
	"github.com/weir-dev/weir/pkg/store"
	"github.com/weir-dev/weir/pkg/twotier"
)

func TestEveryLimitHasToAdmit(t *testing.T) {
	e := newEnforcer(t, newStore(frozen))
	apply(t, e, policyOf(limitOf("all", 10), limitOf("few", 3)))
	if got := admit(t, e, 10, "/"); got != 3 {
		t.Errorf("admitted %d, want 3", got)
	}
}

// TestARefusalByALaterLimitCostsTheEarlierOnesNothing also shows that it is not
// counted there: the auditor would otherwise see demand that was never refused.
func TestARefusalByALaterLimitCostsTheEarlierOnesNothing(t *testing.T) {
	for _, mode := range []policy.ConsistencyMode{policy.Leased, policy.Strict} {
		t.Run(string(mode), func(t *testing.T) {
			e := newEnforcer(t, newStore(frozen))
			p := policyOf(limitOf("all", 10), limitOf("few", 3, under("/few")))
			if mode == policy.Strict {
				p.Consistency = policy.Consistency{Mode: policy.Strict}
			}
			apply(t, e, p)
			if got := admit(t, e, 10, "/few"); got != 3 {
				t.Errorf("admitted %d below /few, want 3", got)
			}
			if all := counted(e, "all"); all.Admitted != 3 || all.Refused != 0 {
				t.Errorf("limit all counted %d admitted and %d refused, want 3 and 0", all.Admitted, all.Refused)
			}
			if few := counted(e, "few"); few.Admitted != 3 || few.Refused != 7 {
				t.Errorf("limit few counted %d admitted and %d refused, want 3 and 7", few.Admitted, few.Refused)
			}
			if mode == policy.Leased { // a strict return is under way
				if got := admit(t, e, 10, "/"); got != 7 {
					t.Errorf("admitted %d more, want the 7 that are left", got)
				}
			}
		})
	}
}

func TestShadowCountsAndLetsThrough(t *testing.T) {
	shadow := policyOf(limitOf("all", 3))
	shadow.Mode = policy.Shadow
	for name, tc := range map[string]struct {
		mode   enforce.Mode
		policy policy.Policy
	}{
		"by the policy's mode": {enforce.Enforce, shadow},
		"by the pod's mode":    {enforce.Shadow, policyOf(limitOf("all", 3))},
	} {
		t.Run(name, func(t *testing.T) {
			e := newEnforcer(t, newStore(frozen), func(c *enforce.Config) { c.Mode = tc.mode })
			apply(t, e, tc.policy)
			if got := admit(t, e, 10, "/"); got != 10 {
				t.Errorf("let %d through, want 10", got)
			}
			if all := counted(e, "all"); all.Admitted != 3 || all.Refused != 7 {
				t.Errorf("counted %d admitted and %d refused, want 3 and 7", all.Admitted, all.Refused)
			}
			d, err := e.Check(context.Background(), enforce.Query{Policy: "checkout", Limit: "all", Cost: 1})
			if err != nil || !d.Allowed {
				t.Errorf("check: allowed %v, %v", d.Allowed, err)
			}
			if n := e.Limits()[0].Counts.Requests(count.ShadowRefused); n != 8 {
				t.Errorf("%d requests were refused in shadow, want 8", n)
			}
		})
	}
}

func TestBypassCountsNothing(t *testing.T) {
	e := newEnforcer(t, newStore(frozen), func(c *enforce.Config) { c.Mode = enforce.Bypass })
	apply(t, e, policyOf(limitOf("all", 3)))
	if got := admit(t, e, 10, "/"); got != 10 {
		t.Errorf("let %d through, want 10", got)
	}
	if d, err := e.Check(context.Background(), enforce.Query{Policy: "checkout", Limit: "all", Cost: 3}); err != nil || !d.Allowed || d.Limit != 3 || d.Remaining != 3 {
		t.Errorf("check: %+v, %v", d, err)
	}
	if all := counted(e, "all"); all.Admitted != 0 || all.Refused != 0 {
		t.Errorf("counted %d admitted and %d refused", all.Admitted, all.Refused)
	}
}

func TestKeysAreCountedApart(t *testing.T) {
	e := newEnforcer(t, newStore(frozen))
	apply(t, e, policyOf(limitOf("all", 3, byTenant(policy.Shared))))
	for _, line := range []string{"/ X-Tenant:gold", "/ X-Tenant:silver", "/"} {
		if got := admit(t, e, 5, line); got != 3 {
			t.Errorf("%s: admitted %d, want 3", line, got)
		}
	}
}

func TestARequestWithoutTheKeyIsRejected(t *testing.T) {
	e := newEnforcer(t, newStore(frozen))
	apply(t, e, policyOf(limitOf("all", 3), limitOf("keyed", 3, byTenant(policy.Reject))))
	v, err := e.Decide(context.Background(), get("/"))
	if err != nil || v.Allowed || v.Refusal.Cause != enforce.KeyMissing || v.Refusal.Missing.Header != "X-Tenant" {
		t.Errorf("got %+v, %v", v, err)
	}
	if got := admit(t, e, 5, "/ X-Tenant:gold"); got != 3 {
		t.Errorf("the rejected request cost limit all: %d admitted, want 3", got)
	}
}

func TestARequestWithoutTheKeySkipsTheLimit(t *testing.T) {
	e := newEnforcer(t, newStore(frozen))
	apply(t, e, policyOf(limitOf("keyed", 3, byTenant(policy.Skip))))
	if got := admit(t, e, 5, "/"); got != 5 {
		t.Errorf("admitted %d, want 5", got)
	}
}

func TestAnErrorNeverAdmits(t *testing.T) {
	defect := errors.New("defect")
	e := newEnforcer(t, nil, scripted(func(string, int64) (twotier.Decision, error) {
		return twotier.Decision{Allowed: true}, defect
	}))
	apply(t, e, policyOf(limitOf("all", 3)))
	if v, err := e.Decide(context.Background(), get("/")); v.Allowed || !errors.Is(err, defect) {
		t.Errorf("got %+v, %v", v, err)
	}
	if d, err := e.Check(context.Background(), enforce.Query{Policy: "checkout", Limit: "all", Cost: 1}); d.Allowed || !errors.Is(err, defect) {
		t.Errorf("check: got %+v, %v", d, err)
	}
}

func TestTheFailureActionSaysThatTheStoreIsAway(t *testing.T) {
	e := newEnforcer(t, away{})
	apply(t, e, policyOf(limitOf("all", 3)))
	v, err := e.Decide(context.Background(), get("/"))
	if err != nil || v.Allowed || v.Refusal.Cause != enforce.StoreUnavailable || v.Refusal.Policy.Name != "checkout" ||
		v.Refusal.Limit.Name != "all" || v.Refusal.Decision.Source != twotier.FromFailureAction {
		t.Errorf("got %+v, %v", v, err)
	}
	if n := e.Limits()[0].Counts.Requests(count.FailedClosed); n != 1 {
		t.Errorf("%d requests failed closed, want 1", n)
	}
	p := policyOf(limitOf("all", 3))
	p.OnStoreUnavailable = policy.Allow
	apply(t, e, p)
	if got := admit(t, e, 5, "/"); got != 5 {
		t.Errorf("admitted %d, want 5", got)
	}
	if n := e.Limits()[0].Counts.Requests(count.FailedOpen); n != 5 {
		t.Errorf("%d requests failed open, want 5", n)
	}
}

// away is a store that cannot be reached.
type away struct{}

func (away) Apply(context.Context, store.Key, limiter.Params, limiter.Command) (limiter.Result, error) {
	return limiter.Result{}, &store.UnavailableError{Store: "away", Cause: errors.New("gone")}
}

// TestTheCountersAreIndependentOfTheGrants runs an engine that admits everything
// and claims that its windows granted nothing: the counts show it.
func TestTheCountersAreIndependentOfTheGrants(t *testing.T) {
	windows := &limiter.Windows{N: 1}
	windows.Open[0] = limiter.OpenWindow{Rate: limiter.Rate{Limit: 10, Window: hour}, Index: 5}
	e := newEnforcer(t, nil, scripted(func(string, int64) (twotier.Decision, error) {
		return twotier.Decision{Allowed: true, Limit: 10, Remaining: 10, Windows: windows}, nil
	}))
	apply(t, e, policyOf(limitOf("all", 10)))
	admit(t, e, 15, "/")
	if all := counted(e, "all"); all.Admitted != 15 {
		t.Errorf("the auditor saw %d of 15 admissions against a limit of 10", all.Admitted)
	}
}

func TestCheck(t *testing.T) {
	e := newEnforcer(t, newStore(frozen))
	keyed := limitOf("keyed", 5, byTenant(policy.Shared))
	elsewhere := policyOf(limitOf("all", 5))
	elsewhere.Namespace = "bank"
	apply(t, e, elsewhere, policyOf(limitOf("all", 5, under("/never")), keyed))

	ask := func(name, limit, key string, cost int64) (twotier.Decision, error) {
		return e.Check(context.Background(), enforce.Query{Policy: name, Limit: limit, Key: key, Cost: cost})
	}
	if d, err := ask("checkout", "all", "", 4); err != nil || !d.Allowed || d.Limit != 5 || d.Remaining != 1 {
		t.Errorf("got %+v, %v", d, err)
	}
	if d, err := ask("checkout", "all", "", 2); err != nil || d.Allowed || d.RetryAfter <= 0 {
		t.Errorf("got %+v, %v", d, err)
	}
	if d, err := ask("checkout", "keyed", "gold", 5); err != nil || !d.Allowed {
		t.Errorf("got %+v, %v", d, err)
	}
	if got := admit(t, e, 5, "/ X-Tenant:gold"); got != 0 {
		t.Errorf("the proxy admitted %d of a key that a check had spent", got)
	}
	if keyed := counted(e, "keyed"); keyed.Admitted != 5 || keyed.Refused != 5 {
		t.Errorf("counted %d admitted and %d refused, want 5 and 5", keyed.Admitted, keyed.Refused)
	}

	var notFound *enforce.NotFoundError
	if _, err := ask("billing", "all", "", 1); !errors.As(err, &notFound) || notFound.Field != "policy" || notFound.Name != "billing" {
		t.Errorf("unknown policy: %v", err)
	}
	if _, err := ask("checkout", "none", "", 1); !errors.As(err, &notFound) || notFound.Field != "limit" || notFound.Name != "none" {
		t.Errorf("unknown limit: %v", err)
	}
	var key *enforce.KeyError
	if _, err := ask("checkout", "all", "gold", 1); !errors.As(err, &key) || key.Parts != 0 || key.Limit != "all" {
		t.Errorf("a key on a limit without: %v", err)
	}
	if _, err := ask("checkout", "keyed", "", 1); !errors.As(err, &key) || key.Parts != 1 || key.Limit != "keyed" {
		t.Errorf("no key on a limit with: %v", err)
	}
	before := counted(e, "all")
	var cost *enforce.CostError
	if _, err := ask("checkout", "all", "", limiter.MaxLimit); !errors.As(err, &cost) || cost.Limit != "all" || cost.Cost != limiter.MaxLimit {
		t.Errorf("a cost that is never admitted: %v", err)
	}
	if after := counted(e, "all"); after.Refused != before.Refused {
		t.Errorf("a cost that is never admitted was counted as %d refused", after.Refused-before.Refused)
	}
}

func BenchmarkDecide(b *testing.B) {
	e := newEnforcer(b, newStore(frozen))
	p := policyOf(limitOf("all", limiter.MaxLimit))
	p.Consistency.Batch = limiter.MaxLimit
	apply(b, e, p)
	r := get("/")
	b.ReportAllocs()
	for b.Loop() {
		if v, err := e.Decide(context.Background(), r); err != nil || !v.Allowed {
			b.Fatal(v, err)
		}
	}
}
