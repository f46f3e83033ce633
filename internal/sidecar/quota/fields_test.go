package quota_test

import (
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/weir-dev/weir/internal/sidecar/enforce"
	"github.com/weir-dev/weir/internal/sidecar/quota"
	"github.com/weir-dev/weir/pkg/limiter"
	"github.com/weir-dev/weir/pkg/policy"
	"github.com/weir-dev/weir/pkg/twotier"
)

// stateWith returns what a limit of 100 a minute says that has that many left for the
// next 30 seconds.
func stateWith(left int64, response policy.Response) enforce.QuotaState {
	return enforce.QuotaState{
		Policy:   &policy.Policy{Name: "checkout", Response: response},
		Limit:    &policy.Limit{Name: "all"},
		Params:   limiter.Params{Rates: []limiter.Rate{{Limit: 100, Window: 60 * limiter.Second}}},
		Decision: twotier.Decision{Allowed: true, Limit: 100, Remaining: left, ResetAfter: 29500 * time.Millisecond},
	}
}

// refused makes s a refusal that lasts 3 seconds.
func refused(s enforce.QuotaState, cause enforce.Cause) enforce.QuotaState {
	s.Decision.Allowed, s.Decision.RetryAfter = false, 3*time.Second
	s.Refusal = &enforce.Refusal{Cause: cause}
	return s
}

func TestFields(t *testing.T) {
	ietf := policy.Response{IETF: true, Quota: policy.NearLimit}
	always := policy.Response{IETF: true, XRateLimit: true, Quota: policy.Always}
	bucket := refused(stateWith(0, ietf), enforce.QuotaExceeded)
	bucket.Params = limiter.Params{Algorithm: limiter.TokenBucket, Rates: []limiter.Rate{
		{Limit: 5, Window: 1500 * limiter.Millisecond, Burst: 100}, {Limit: 9, Window: limiter.Second},
	}}
	bucket.Limit = &policy.Limit{Name: `a"b`, Cost: new(policy.Cost)}
	monthly := stateWith(3, ietf)
	monthly.Params.Rates = []limiter.Rate{{Limit: 100, Window: limiter.MaxWindow, Monthly: true}}
	gone := refused(stateWith(0, always), enforce.StoreUnavailable)
	gone.Decision.RetryAfter = 0
	never := refused(stateWith(0, always), enforce.CostTooLarge)
	never.Decision = twotier.Decision{}
	for name, tc := range map[string]struct {
		of   enforce.QuotaState
		want []quota.Field
	}{
		"no limit":                        {enforce.QuotaState{}, nil},
		"a quarter is left":               {stateWith(25, ietf), nil},
		"less is left":                    {stateWith(24, ietf), []quota.Field{{"RateLimit-Policy", `"all";q=100;w=60`}, {"RateLimit", `"all";r=24;t=30`}}},
		"on rejection, admitted":          {stateWith(0, policy.Response{IETF: true, Quota: policy.OnRejection}), nil},
		"neither kind":                    {stateWith(0, policy.Response{Quota: policy.Always}), nil},
		"a refusal without either kind":   {refused(stateWith(0, policy.Response{Quota: policy.Always}), enforce.QuotaExceeded), []quota.Field{{"Retry-After", "3"}}},
		"admitted without a word of left": {func() enforce.QuotaState { s := stateWith(0, always); s.Decision.Limit = 0; return s }(), nil},
		"both kinds, always": {stateWith(99, always), []quota.Field{
			{"RateLimit-Policy", `"all";q=100;w=60`},
			{"RateLimit", `"all";r=99;t=30`},
			{"X-RateLimit-Limit", "100"},
			{"X-RateLimit-Remaining", "99"},
			{"X-RateLimit-Reset", "30"},
		}},
		"a refusal": {refused(stateWith(0, ietf), enforce.QuotaExceeded), []quota.Field{
			{"RateLimit-Policy", `"all";q=100;w=60`}, {"RateLimit", `"all";r=0;t=30`}, {"Retry-After", "3"},
		}},
		"a bucket, costs, and a window of no whole seconds": {bucket, []quota.Field{
			{"RateLimit-Policy", `"a\"b";q=5;qu="weir-cost";weir-burst=100`}, {"RateLimit", `"a\"b";r=0;t=3`}, {"Retry-After", "3"},
		}},
		"a month":                         {monthly, []quota.Field{{"RateLimit-Policy", `"all";q=100`}, {"RateLimit", `"all";r=3;t=30`}}},
		"the store is away":               {gone, []quota.Field{{"Retry-After", "1"}}},
		"what is never admitted":          {never, nil},
		"the store is drained for longer": {refused(stateWith(0, always), enforce.StoreDraining), []quota.Field{{"Retry-After", "3"}}},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, quota.Fields(tc.of)); diff != "" {
				t.Errorf("fields (-want +got):\n%s", diff)
			}
		})
	}
}

// TestJitterOnlyAdds, and at most what the policy says.
func TestJitterOnlyAdds(t *testing.T) {
	s := refused(stateWith(0, policy.Response{Quota: policy.OnRejection, Jitter: 50}), enforce.QuotaExceeded)
	s.Decision.RetryAfter = 100 * time.Second
	var waits []int
	for range 1000 {
		wait, err := strconv.Atoi(quota.Fields(s)[0].Value)
		if err != nil {
			t.Fatal(err)
		}
		waits = append(waits, wait)
	}
	if least, most := slices.Min(waits), slices.Max(waits); least < 100 || least > 105 || most < 145 || most > 150 {
		t.Errorf("waits are from %d to %d, want 100 to 150", least, most)
	}
}

// TestBindingRate finds the rate that a decision is about.
func TestBindingRate(t *testing.T) {
	second, minute := limiter.Rate{Limit: 10, Window: limiter.Second}, limiter.Rate{Limit: 10, Window: 60 * limiter.Second}
	s := stateWith(0, policy.Response{})
	s.Params.Rates = []limiter.Rate{second, minute}
	s.Decision.Limit = 10
	if got := quota.BindingRate(s); got != minute {
		t.Errorf("30 s to the end: got %+v", got)
	}
	s.Decision.ResetAfter = time.Second
	if got := quota.BindingRate(s); got != second {
		t.Errorf("1 s to the end: got %+v", got)
	}
}
