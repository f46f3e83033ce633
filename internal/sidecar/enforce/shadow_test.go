package enforce_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/weir-dev/weir/internal/sidecar/count"
	"github.com/weir-dev/weir/internal/sidecar/enforce"
	"github.com/weir-dev/weir/pkg/policy"
	"github.com/weir-dev/weir/pkg/twotier"
)

func inShadow(l *policy.Limit) { l.Mode = policy.Shadow }

// TestALimitInShadowCountsExactlyWhatPasses: a request that an enforced limit refuses
// is not demand of one in shadow, wherever that stands in the policy. A request that
// one in shadow refuses costs the others nothing.
func TestALimitInShadowCountsExactlyWhatPasses(t *testing.T) {
	for _, mode := range []policy.ConsistencyMode{policy.Leased, policy.CachedDeny, policy.Strict} {
		t.Run(string(mode), func(t *testing.T) {
			e := newEnforcer(t, newStore(frozen))
			p := policyOf(limitOf("watched", 3, inShadow), limitOf("enforced", 5), limitOf("watched-too", 100, inShadow))
			if p.Consistency.Mode = mode; mode != policy.Leased {
				p.Consistency = policy.Consistency{Mode: mode}
			}
			apply(t, e, p)
			if got := admit(t, e, 10, "/"); got != 5 {
				t.Errorf("admitted %d, want the 5 of the limit that is enforced", got)
			}
			for limit, want := range map[string][2]int64{"watched": {3, 2}, "enforced": {5, 5}, "watched-too": {5, 0}} {
				if c := counted(e, limit); c.Admitted != want[0] || c.Refused != want[1] {
					t.Errorf("limit %s counted %d admitted and %d refused, want %v", limit, c.Admitted, c.Refused, want)
				}
			}
			if n := e.Limits()[0].Stats.RoundTrips; mode == policy.Strict && n != 5 {
				t.Errorf("the store was asked %d times about requests, and 5 of them passed", n)
			}
			if n := e.Limits()[0].Counts.Requests(count.ShadowRefused); n != 2 {
				t.Errorf("%d requests were refused in shadow, want 2", n)
			}
			if states := e.Limits(); states[0].Mode != policy.Shadow || states[1].Mode != policy.Enforce {
				t.Errorf("the modes are %s and %s", states[0].Mode, states[1].Mode)
			}
		})
	}
}

func TestALimitInShadowRefusesNothing(t *testing.T) {
	defect := errors.New("defect")
	for name, decide := range map[string]func(string, int64) (twotier.Decision, error){
		"when it fails":         func(string, int64) (twotier.Decision, error) { return twotier.Decision{}, defect },
		"when its store drains": func(string, int64) (twotier.Decision, error) { return twotier.Decision{Source: twotier.FromDrain}, nil },
		"when requests have to wait": func(string, int64) (twotier.Decision, error) {
			return twotier.Decision{Allowed: true, Delay: time.Hour}, nil
		},
	} {
		t.Run(name, func(t *testing.T) {
			e := newEnforcer(t, nil, scripted(decide))
			apply(t, e, policyOf(limitOf("watched", 3, inShadow), limitOf("keyed", 3, inShadow, byTenant(policy.Reject))))
			v, err := e.Decide(context.Background(), get("/"))
			if err != nil || !v.Allowed || v.Admission != nil {
				t.Errorf("got %+v, %v", v, err)
			}
		})
	}
}

func TestACheckOfALimitInShadowNeverWaits(t *testing.T) {
	e := newEnforcer(t, nil, scripted(func(string, int64) (twotier.Decision, error) {
		return twotier.Decision{Allowed: true, Delay: time.Hour}, nil
	}))
	apply(t, e, policyOf(limitOf("watched", 3, inShadow)))
	d, err := e.Check(context.Background(), enforce.Query{Policy: "checkout", Limit: "watched", Cost: 1})
	if err != nil || !d.Allowed || d.Delay != 0 {
		t.Errorf("got %+v, %v", d, err)
	}
}
