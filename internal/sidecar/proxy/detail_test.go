package proxy

import (
	"net/http"
	"testing"
	"time"

	"github.com/weir-dev/weir/internal/sidecar/enforce"
	"github.com/weir-dev/weir/internal/sidecar/quota"
	"github.com/weir-dev/weir/pkg/limiter"
	"github.com/weir-dev/weir/pkg/policy"
	"github.com/weir-dev/weir/pkg/twotier"
)

// first returns the value of a header that is spelled so.
func first(h http.Header, name string) string { return h[name][0] }

// TestARefusalSaysThatTheStoreForgot, which no client could guess from a limit that it did
// not use up.
func TestARefusalSaysThatTheStoreForgot(t *testing.T) {
	const admits = `limit "l" of policy "p" admits 10 per 24h0m0s`
	for reason, want := range map[limiter.Reason]string{
		limiter.Exhausted: admits,
		limiter.Amnesia: admits + "; its store may have forgotten what it granted, so nothing is granted for another 191h59m1s: " +
			"the condition Learning of the policy names the cure",
		limiter.ClockBehind: admits + "; the clock of its store went back, so nothing is granted until it has caught up 191h59m1s: " +
			"the condition Learning of the policy names the cure",
	} {
		got := quotaDetail(&enforce.Refusal{
			Policy: &policy.Policy{Name: "p"}, Limit: &policy.Limit{Name: "l"}, Cause: enforce.QuotaExceeded,
			Params:   limiter.Params{Rates: []limiter.Rate{{Limit: 10, Window: limiter.Day}}},
			Decision: twotier.Decision{Limit: 10, Reason: reason, RetryAfter: 192*time.Hour - 59500*time.Millisecond},
		})
		if got != want {
			t.Errorf("a refusal for %s says\n%s\nwant\n%s", reason, got, want)
		}
	}
}

func TestTheFieldsOfEveryAlgorithm(t *testing.T) {
	perSecond := limiter.Rate{Limit: 10, Window: limiter.Second}
	bursting := limiter.Rate{Limit: 10, Window: limiter.Second, Burst: 50}
	monthly := limiter.Rate{Limit: 1000, Window: limiter.MaxWindow, Monthly: true}
	soon := twotier.Decision{Limit: 10, ResetAfter: 5 * time.Second, RetryAfter: 100 * time.Millisecond}
	for name, tc := range map[string]struct {
		params               limiter.Params
		cost                 *policy.Cost
		decision             twotier.Decision
		policy, left, detail string
	}{
		"a window gives nothing until it ends": {
			limiter.Params{Rates: []limiter.Rate{perSecond}},
			nil,
			twotier.Decision{Limit: 10, ResetAfter: 900 * time.Millisecond, RetryAfter: 900 * time.Millisecond},
			`"l";q=10;w=1`, `"l";r=0;t=1`, "10 per 1s",
		},
		"the rate that binds is shown": {
			limiter.Params{Rates: []limiter.Rate{perSecond, {Limit: 100, Window: 60 * limiter.Second}}},
			nil,
			twotier.Decision{Limit: 100, ResetAfter: 40 * time.Second, RetryAfter: 40 * time.Second},
			`"l";q=100;w=60`, `"l";r=0;t=40`, "100 per 1m0s",
		},
		"months have no length": {
			limiter.Params{Rates: []limiter.Rate{monthly}},
			nil,
			twotier.Decision{Limit: 1000, ResetAfter: 1000 * time.Hour, RetryAfter: 24 * time.Hour},
			`"l";q=1000`, `"l";r=0;t=3600000`, "1000 per calendar month",
		},
		"a sliding window has room as soon as the oldest is out": {
			limiter.Params{Algorithm: limiter.SlidingWindow, Buckets: 10, Rates: []limiter.Rate{perSecond}},
			nil, soon,
			`"l";q=10;w=1`, `"l";r=0;t=1`, "10 in any 1s",
		},
		"a bucket has a burst and fills evenly": {
			limiter.Params{Algorithm: limiter.TokenBucket, Rates: []limiter.Rate{bursting}},
			nil, soon,
			`"l";q=10;w=1;weir-burst=50`, `"l";r=0;t=1`, "10 per 1s and bursts of 50",
		},
		"of buckets the nearest burst binds, less what lives longer": {
			limiter.Params{Algorithm: limiter.GCRA, Rates: []limiter.Rate{perSecond, bursting}},
			nil,
			twotier.Decision{Limit: 48, RetryAfter: 7 * time.Second},
			`"l";q=10;w=1;weir-burst=50`, `"l";r=0;t=7`, "10 per 1s and bursts of 50",
		},
		"a leaky bucket has a queue": {
			limiter.Params{Algorithm: limiter.LeakyBucket, MaxDelay: 2 * limiter.Second, Rates: []limiter.Rate{perSecond}},
			nil, soon,
			`"l";q=10;w=1`, `"l";r=0;t=1`, "10 per 1s, evenly, and lets none wait longer than 2s",
		},
		"units are not requests when requests cost": {
			limiter.Params{Rates: []limiter.Rate{perSecond}},
			&policy.Cost{Default: 1, Max: 5}, soon,
			`"l";q=10;qu="weir-cost";w=1`, `"l";r=0`, "10 per 1s",
		},
	} {
		t.Run(name, func(t *testing.T) {
			why := &enforce.Refusal{
				Policy: &policy.Policy{Name: "p", Response: policy.Response{IETF: true}}, Limit: &policy.Limit{Name: "l", Cost: tc.cost},
				Params: tc.params, Decision: tc.decision, Cause: enforce.QuotaExceeded,
			}
			if tc.cost != nil {
				why.Decision.ResetAfter, why.Decision.RetryAfter = 0, 0
			}
			h := http.Header{}
			for _, f := range quota.Fields(why.State()) {
				h[f.Name] = []string{f.Value}
			}
			if got := first(h, "RateLimit-Policy"); got != tc.policy {
				t.Errorf("RateLimit-Policy is %s, want %s", got, tc.policy)
			}
			if got := first(h, "RateLimit"); got != tc.left {
				t.Errorf("RateLimit is %s, want %s", got, tc.left)
			}
			if got, want := quotaDetail(why), `limit "l" of policy "p" admits `+tc.detail; got != want {
				t.Errorf("the detail is %q, want %q", got, want)
			}
		})
	}
}
