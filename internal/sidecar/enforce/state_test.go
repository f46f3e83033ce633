package enforce_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/weir-dev/weir/internal/sidecar/count"
	"github.com/weir-dev/weir/internal/sidecar/enforce"
	"github.com/weir-dev/weir/pkg/policy"
	"github.com/weir-dev/weir/pkg/store"
	"github.com/weir-dev/weir/pkg/twotier"
)

// A counting engine has figures.
type counting struct{ engine }

func (*counting) Stats() twotier.Stats {
	return twotier.Stats{RoundTrips: 1, ActiveKeys: 2, CutOff: errors.New("gone")}
}
func (*counting) Credits() int64 { return 3 }

func TestTheStateOfALimit(t *testing.T) {
	e := newEnforcer(t, nil, func(c *enforce.Config) {
		c.NewLimiter = func(twotier.Config, twotier.Store) (enforce.Limiter, error) {
			return &counting{engine{closed: make(chan struct{})}}, nil
		}
	})
	p := policyOf(limitOf("bucket", 10, func(l *policy.Limit) { l.Algorithm, l.Mode = policy.TokenBucket, policy.Shadow }))
	p.Consistency = policy.Consistency{Mode: policy.Strict}
	apply(t, e, p)
	want := []enforce.LimitState{{
		Name:      count.Name{Namespace: "shop", Policy: "checkout", Limit: "bucket"},
		Algorithm: policy.TokenBucket, Consistency: policy.Strict, Mode: policy.Shadow,
		Stats: twotier.Stats{RoundTrips: 1, ActiveKeys: 2, CutOff: errors.New("gone")}, Credits: 3,
	}}
	if diff := cmp.Diff(want, e.Limits(), cmpopts.IgnoreFields(enforce.LimitState{}, "Counts"), cmp.Comparer(func(a, b error) bool {
		return a.Error() == b.Error()
	})); diff != "" {
		t.Errorf("the state (-want +got):\n%s", diff)
	}
	r := e.Report(time.Now(), 1)[0]
	if r.GetNamespace() != "shop" || r.GetPolicy() != "checkout" || r.GetRoundTripsTotal() != 1 || r.GetActiveKeys() != 2 || r.GetStoreError() != "gone" {
		t.Errorf("it reports %v", r)
	}
}

// TestTheLastPoliciesAreShownAfterTheEnd: the last report and the last scrape come then.
func TestTheLastPoliciesAreShownAfterTheEnd(t *testing.T) {
	e := newEnforcer(t, newStore(frozen))
	apply(t, e, policyOf(limitOf("all", 3)))
	before, _ := e.Set()
	e.Close(context.Background())
	if set, version := e.Set(); set != before || version != "version" || len(e.Limits()) != 1 {
		t.Errorf("%d limits of version %q", len(e.Limits()), version)
	}
}

func TestAnAdmittedRequestSeesHowItStands(t *testing.T) {
	e := newEnforcer(t, newStore(frozen))
	p := policyOf(limitOf("all", 3))
	p.Response = policy.Response{IETF: true, Quota: policy.Always, StatusCode: 429, Body: policy.ProblemJSON}
	apply(t, e, p)
	v, err := e.Decide(t.Context(), get("/"))
	if err != nil || v.Shown == nil || v.Shown.Limit.Name != "all" || v.Shown.Policy.Name != "checkout" || v.Shown.Decision.Remaining != 2 {
		t.Errorf("it is shown %+v, %v", v.Shown, err)
	}
}

// TestAKeyThatIsCheckedIsCounted by its value.
func TestAKeyThatIsCheckedIsCounted(t *testing.T) {
	e := newEnforcer(t, newStore(frozen))
	apply(t, e, policyOf(limitOf("keyed", 3, byTenant(policy.Shared))))
	if _, err := e.Check(t.Context(), enforce.Query{Policy: "checkout", Limit: "keyed", Key: "gold", Cost: 2}); err != nil {
		t.Fatal(err)
	}
	hot := e.Report(time.Now(), 1)[0].GetHottest()
	if len(hot) != 1 || hot[0].GetHash() != store.HashValue("gold") || hot[0].GetAdmitted() != 2 {
		t.Errorf("the hottest keys are %v", hot)
	}
}

// TestALookIsOfItsOwnCounter, of its tenant, and by the limit of its value.
func TestALookIsOfItsOwnCounter(t *testing.T) {
	e := newEnforcer(t, newStore(frozen))
	apply(t, e, policyOf(
		limitOf("users", 5, of("user"), each("user", policy.Skip), func(l *policy.Limit) {
			l.Overrides = []policy.Override{{Values: []policy.Value{{"ann"}}, Rates: limitOf("", 8).Rates}}
		}),
		limitOf("plans", 40, of("plan"), func(l *policy.Limit) {
			l.Fairness = &policy.Fairness{
				Tenant:  policy.KeyPart{Type: policy.DescriptorKey, Name: "plan"},
				Weights: []policy.Weight{{Tenant: "gold", Weight: 3}, {Tenant: "silver", Weight: 1}}, DefaultWeight: 1, Reserve: true,
			}
		}),
	))
	rule(t, e, descriptor(3, "user=ann"))
	for user, want := range map[string][2]int64{"ann": {8, 5}, "bob": {5, 5}} {
		s := rule(t, e, descriptor(0, "user="+user)).States[0]
		if s.Params.Rates[0].Limit != want[0] || s.Decision.Remaining != want[1] {
			t.Errorf("%s has %d of %d left, want %v", user, s.Decision.Remaining, s.Params.Rates[0].Limit, want)
		}
	}
	for rule(t, e, descriptor(1, "plan=silver")).Allowed {
	}
	before := counted(e, "plans").Refused
	if rule(t, e, descriptor(0, "plan=silver")).Allowed || !rule(t, e, descriptor(0, "plan=gold")).Allowed {
		t.Error("a look is answered for another tenant")
	}
	if got := counted(e, "plans").Refused - before; got != 1 {
		t.Errorf("a look that is refused counts as %d", got)
	}
	for tenant, want := range map[string]bool{"silver": false, "gold": true} {
		d, err := e.Check(t.Context(), enforce.Query{Policy: "checkout", Limit: "plans", Tenant: tenant, Cost: 1, Peek: true})
		if err != nil || d.Allowed != want {
			t.Errorf("a check as %s: %+v, %v", tenant, d, err)
		}
	}
}
