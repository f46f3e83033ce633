package enforce_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/weir-dev/weir/internal/sidecar/count"
	"github.com/weir-dev/weir/internal/sidecar/enforce"
	"github.com/weir-dev/weir/pkg/limiter"
	"github.com/weir-dev/weir/pkg/policy"
	"github.com/weir-dev/weir/pkg/store"
	"github.com/weir-dev/weir/pkg/store/memory"
	"github.com/weir-dev/weir/pkg/twotier"
)

func TestExemptRequestsAreNotCounted(t *testing.T) {
	e := newEnforcer(t, newStore(frozen))
	apply(t, e, policyOf(limitOf("all", 3, func(l *policy.Limit) {
		l.Exempt = []policy.Match{{Headers: []policy.HeaderMatch{{Type: policy.Exact, Name: "x-probe", Value: "yes"}}}}
	})))
	if got := admit(t, e, 10, "/ X-Probe:yes"); got != 10 {
		t.Errorf("admitted %d of 10 that are exempt", got)
	}
	if got := admit(t, e, 10, "/ X-Probe:no"); got != 3 {
		t.Errorf("admitted %d, want 3", got)
	}
	if c := counted(e, "all"); c.Admitted != 3 || c.Refused != 7 {
		t.Errorf("counted %d admitted and %d refused, want 3 and 7", c.Admitted, c.Refused)
	}
}

func TestSomeKeysHaveLimitsOfTheirOwn(t *testing.T) {
	e := newEnforcer(t, newStore(frozen))
	apply(t, e, policyOf(limitOf("keyed", 3, byTenant(policy.Shared), func(l *policy.Limit) {
		l.Overrides = []policy.Override{
			{Values: []policy.Value{{"gold"}, {"platinum"}}, Rates: []limiter.Rate{{Limit: 8, Window: hour}}},
			{Values: []policy.Value{{"free"}}, Rates: []limiter.Rate{{Limit: 1, Window: hour}}},
		}
	})))
	for line, want := range map[string]int{
		"/ X-Tenant:gold": 8, "/ X-Tenant:platinum": 8, "/ X-Tenant:free": 1, "/ X-Tenant:other": 3, "/": 3,
	} {
		if got := admit(t, e, 10, line); got != want {
			t.Errorf("%s: admitted %d, want %d", line, got, want)
		}
	}
	v, err := e.Decide(context.Background(), get("/ X-Tenant:gold"))
	if err != nil || v.Allowed || v.Refusal.Params.Rates[0].Limit != 8 || v.Refusal.Value != "gold" {
		t.Errorf("the refusal names %+v, %v", v.Refusal, err)
	}
}

// TestTenantsKeepTheirPart: where parts are reserved, a tenant that asks for more than its part
// cannot have that of one that has not asked yet.
func TestTenantsKeepTheirPart(t *testing.T) {
	e := newEnforcer(t, newStore(frozen))
	p := policyOf(limitOf("fair", 40, func(l *policy.Limit) {
		l.Fairness = &policy.Fairness{
			Tenant:  policy.KeyPart{Type: policy.HeaderKey, Header: "x-tenant"},
			Weights: []policy.Weight{{Tenant: "gold", Weight: 3}, {Tenant: "silver", Weight: 1}}, DefaultWeight: 1, Reserve: true,
		}
	}))
	apply(t, e, p)
	heavy := admit(t, e, 100, "/ X-Tenant:silver")
	if heavy < 1 || heavy > 10 {
		t.Errorf("a tenant with a quarter of the weight was admitted %d of 40 before the other came", heavy)
	}
	if got := admit(t, e, 100, "/ X-Tenant:gold"); got < 30 {
		t.Errorf("the other was admitted %d, less than the 30 that are its part", got)
	}
	if c := counted(e, "fair"); c.Admitted > 40 {
		t.Errorf("%d of 40 admitted", c.Admitted)
	}
	d, err := e.Check(context.Background(), enforce.Query{Policy: "checkout", Limit: "fair", Tenant: "silver", Cost: 1})
	if err != nil || d.Allowed {
		t.Errorf("a check as the tenant that has had its part: %+v, %v", d, err)
	}
}

func TestACheckNamesATenantWhereThereAreTenants(t *testing.T) {
	e := newEnforcer(t, newStore(frozen))
	apply(t, e, policyOf(limitOf("all", 3)))
	_, err := e.Check(context.Background(), enforce.Query{Policy: "checkout", Limit: "all", Tenant: "gold", Cost: 1})
	if wrong, ok := errors.AsType[*enforce.TenantError](err); !ok || wrong.Limit != "all" {
		t.Errorf("got %v", err)
	}
}

// byHeader makes a request cost what its header says, at most most.
func byHeader(most int64) func(*policy.Limit) {
	return func(l *policy.Limit) { l.Cost = &policy.Cost{Default: 2, Max: most, RequestHeader: "x-cost"} }
}

func TestRequestsNameTheirCost(t *testing.T) {
	for line, want := range map[string]int{
		"/ X-Cost:5": 4, "/": 10, "/ X-Cost:many": 10, "/ X-Cost:-5": 10, "/ X-Cost:0": 10, "/ X-Cost:10": 2, "/ X-Cost:1000": 2,
	} {
		t.Run(line, func(t *testing.T) {
			e := newEnforcer(t, newStore(frozen))
			apply(t, e, policyOf(limitOf("all", 20, byHeader(10))))
			if got := admit(t, e, 30, line); got != want {
				t.Errorf("admitted %d, want %d", got, want)
			}
			if c := counted(e, "all"); c.Admitted != 20 {
				t.Errorf("counted %d units, want 20", c.Admitted)
			}
		})
	}
}

// TestARequestThatIsNeverAdmittedIsNotDemand: a cost above the limit is the sender's mistake,
// also when the limit is used up.
func TestARequestThatIsNeverAdmittedIsNotDemand(t *testing.T) {
	e := newEnforcer(t, newStore(frozen))
	apply(t, e, policyOf(limitOf("watched", 20, byHeader(50), inShadow), limitOf("all", 20, byHeader(50), under("/"))))
	for range 2 {
		v, err := e.Decide(context.Background(), get("/ X-Cost:30"))
		if err != nil || v.Allowed || v.Refusal.Cause != enforce.CostTooLarge || v.Refusal.Cost != 30 || v.Refusal.Most != 20 {
			t.Errorf("got %+v, %v", v.Refusal, err)
		}
		admit(t, e, 20, "/")
	}
	if c := counted(e, "all"); c.Admitted != 20 || c.Refused != 60 {
		t.Errorf("counted %d admitted and %d refused, want 20 and 60", c.Admitted, c.Refused)
	}
	if n := e.Limits()[1].Counts.Requests(count.CostTooLarge); n != 2 {
		t.Errorf("%d requests cost too much, want 2", n)
	}
}

func TestAPeekTakesAndCountsNothing(t *testing.T) {
	e := newEnforcer(t, newStore(frozen))
	apply(t, e, policyOf(limitOf("all", 10)))
	peek := enforce.Query{Policy: "checkout", Limit: "all", Cost: 4, Peek: true}
	for range 5 {
		if d, err := e.Check(context.Background(), peek); err != nil || !d.Allowed || d.Limit != 10 || d.Remaining != 10 {
			t.Fatalf("got %+v, %v", d, err)
		}
	}
	admit(t, e, 8, "/")
	if d, err := e.Check(context.Background(), peek); err != nil || d.Allowed || d.Remaining != 2 || d.RetryAfter <= 0 {
		t.Errorf("got %+v, %v", d, err)
	}
	if c := counted(e, "all"); c.Admitted != 8 || c.Refused != 0 {
		t.Errorf("counted %d admitted and %d refused, want 8 and 0", c.Admitted, c.Refused)
	}
	peek.Cost = 11
	var cost *enforce.CostError
	if _, err := e.Check(context.Background(), peek); !errors.As(err, &cost) || cost.Most != 10 {
		t.Errorf("a peek at what is never admitted: %v", err)
	}
}

func TestAPeekAtAStoreThatIsAwayIsNotADecision(t *testing.T) {
	e := newEnforcer(t, unreachable{})
	p := policyOf(limitOf("all", 10))
	p.OnStoreUnavailable = policy.Allow
	apply(t, e, p)
	d, err := e.Check(context.Background(), enforce.Query{Policy: "checkout", Limit: "all", Cost: 1, Peek: true})
	if _, away := errors.AsType[*store.UnavailableError](err); !away || d.Allowed {
		t.Errorf("got %+v, %v", d, err)
	}
}

// TestABucketThatIsEmptyAgainEndsNoWindow: what is counted by windows that the
// algorithm does not have is final only when they are over.
func TestABucketThatIsEmptyAgainEndsNoWindow(t *testing.T) {
	windows := &limiter.Windows{N: 1}
	windows.Open[0] = limiter.OpenWindow{Rate: limiter.Rate{Limit: 60, Window: 60 * limiter.Second}, Index: 5}
	e := newEnforcer(t, nil, scripted(func(string, int64) (twotier.Decision, error) {
		return twotier.Decision{Allowed: true, Windows: windows, ResetAfter: time.Second}, nil
	}))
	apply(t, e, policyOf(limitOf("bucket", 60, func(l *policy.Limit) {
		l.Algorithm, l.Lifetime, l.Rates[0].Window = policy.TokenBucket, limiter.Second, 60*limiter.Second
	})))
	admit(t, e, 1, "/")
	for after, final := range map[time.Duration]bool{30 * time.Second: false, 61 * time.Second: false, 70 * time.Second: true} {
		if row := e.Report(time.Now().Add(after), sessions.Add(1))[0].GetWindows()[0]; row.GetFinal() != final {
			t.Errorf("after %v the window is final: %v", after, row.GetFinal())
		}
	}
}

var _ enforce.Limiter = (*twotier.Limiter)(nil)

// A store whose memory began within the window that is open does not know what it
// granted of it: the report says so, and for how long.
func TestAReportSaysThatTheStoreCannotKnow(t *testing.T) {
	forgot := newStore(func() limiter.Micros { return hour / 4 })
	knows := newStore(frozen)
	for name, s := range map[string]*memory.Store{"Amnesia": memory.New(memory.Options{Clock: func() limiter.Instant {
		return limiter.Instant(400_000 * hour).Add(hour / 4)
	}}), "it knows": knows, "its memory began with the window": forgot} {
		e := newEnforcer(t, s)
		apply(t, e, policyOf(limitOf("all", 10)))
		admit(t, e, 1, "/")
		r := e.Report(time.Now(), sessions.Add(1))[0]
		lasts := time.Duration(r.GetLearningMicros()) * time.Microsecond
		switch {
		case name != "Amnesia" && (lasts != 0 || r.GetLearningReason() != 0):
			t.Errorf("%s: reported %v for %s", name, limiter.Reason(r.GetLearningReason()), lasts)
		case name == "Amnesia" && (r.GetLearningReason() != int32(limiter.Amnesia) || lasts > 45*time.Minute || lasts < 40*time.Minute):
			t.Errorf("%s: reported %v for %s, want three quarters of an hour", name, limiter.Reason(r.GetLearningReason()), lasts)
		}
	}
}
