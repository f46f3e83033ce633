package rls_test

import (
	"context"
	"errors"
	"net"
	"strings"
	"testing"
	"time"

	commonv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/common/ratelimit/v3"
	ratelimitv3 "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/weir-dev/weir/internal/sidecar/enforce"
	"github.com/weir-dev/weir/pkg/limiter"
	"github.com/weir-dev/weir/pkg/policy"
	"github.com/weir-dev/weir/pkg/store"
	"github.com/weir-dev/weir/pkg/twotier"
)

const hour = 3600 * limiter.Second

// shouldRateLimit returns the answer to a call that has one.
func (s *side) shouldRateLimit(t *testing.T, in *ratelimitv3.RateLimitRequest) *ratelimitv3.RateLimitResponse {
	t.Helper()
	out, err := s.ShouldRateLimit(t.Context(), in)
	if err != nil {
		t.Fatal(err)
	}
	if len(out.GetStatuses()) != len(in.GetDescriptors()) {
		t.Fatalf("%d statuses for %d descriptors", len(out.GetStatuses()), len(in.GetDescriptors()))
	}
	return out
}

// result returns how many calls had that result.
func (s *side) result(t *testing.T, name string) float64 {
	t.Helper()
	families, err := s.Registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range families {
		for _, m := range f.GetMetric() {
			if f.GetName() == "weir_rls_calls_total" && m.GetLabel()[0].GetValue() == name {
				return m.GetCounter().GetValue()
			}
		}
	}
	t.Fatalf("no result %s is counted", name)
	return 0
}

func TestHits(t *testing.T) {
	for name, tc := range map[string]struct {
		ofCall uint32
		own    *wrapperspb.UInt64Value
		left   uint32 // of 10
		over   bool
	}{
		"not said":                 {0, nil, 9, false},
		"of the call":              {4, nil, 6, false},
		"of the descriptor":        {4, wrapperspb.UInt64(7), 3, false},
		"none of the descriptor":   {4, wrapperspb.UInt64(0), 10, false},
		"all":                      {10, nil, 0, false},
		"one too many":             {11, nil, 0, true},
		"more than there are":      {0, wrapperspb.UInt64(1 << 63), 0, true},
		"more than any limit has":  {0, wrapperspb.UInt64(uint64(limiter.MaxLimit) + 1), 0, true},
		"as many as the wire says": {1<<32 - 1, nil, 0, true},
	} {
		t.Run(name, func(t *testing.T) {
			s := serve(t, enforcing(t, newStore(frozen), policyOf(limitOf("user", 10, hour))))
			in := call("checkout", "user=ann")
			in.HitsAddend, in.Descriptors[0].HitsAddend = tc.ofCall, tc.own
			out := s.shouldRateLimit(t, in)
			over := out.GetOverallCode() == ratelimitv3.RateLimitResponse_OVER_LIMIT
			if got := out.GetStatuses()[0]; over != tc.over || got.GetLimitRemaining() != tc.left || got.GetCode() != out.GetOverallCode() {
				t.Errorf("got %v, want over %v and %d left", out, tc.over, tc.left)
			}
		})
	}
}

func TestUnits(t *testing.T) {
	const day = 24 * hour
	for _, tc := range []struct {
		rate     limiter.Rate
		want     ratelimitv3.RateLimitResponse_RateLimit_Unit
		multiple uint32
	}{
		{limiter.Rate{Limit: 5, Window: limiter.Second}, ratelimitv3.RateLimitResponse_RateLimit_SECOND, 0},
		{limiter.Rate{Limit: 5, Window: 90 * limiter.Second}, ratelimitv3.RateLimitResponse_RateLimit_SECOND, 90},
		{limiter.Rate{Limit: 5, Window: hour / 60}, ratelimitv3.RateLimitResponse_RateLimit_MINUTE, 0},
		{limiter.Rate{Limit: 5, Window: hour}, ratelimitv3.RateLimitResponse_RateLimit_HOUR, 0},
		{limiter.Rate{Limit: 5, Window: 36 * hour}, ratelimitv3.RateLimitResponse_RateLimit_HOUR, 36},
		{limiter.Rate{Limit: 5, Window: day}, ratelimitv3.RateLimitResponse_RateLimit_DAY, 0},
		{limiter.Rate{Limit: 5, Window: 30 * day}, ratelimitv3.RateLimitResponse_RateLimit_DAY, 30},
		{limiter.Rate{Limit: 5, Window: 7 * day}, ratelimitv3.RateLimitResponse_RateLimit_WEEK, 0},
		{limiter.Rate{Limit: 5, Window: limiter.MaxWindow, Monthly: true}, ratelimitv3.RateLimitResponse_RateLimit_MONTH, 0},
		{limiter.Rate{Limit: 5, Window: 1500 * limiter.Millisecond}, ratelimitv3.RateLimitResponse_RateLimit_UNKNOWN, 0},
		{limiter.Rate{Limit: limiter.MaxLimit, Window: hour}, ratelimitv3.RateLimitResponse_RateLimit_HOUR, 0},
	} {
		l := limitOf("user", 1, hour)
		l.Rates = []limiter.Rate{tc.rate}
		s := serve(t, enforcing(t, newStore(frozen), policyOf(l)))
		got := s.shouldRateLimit(t, call("checkout", "user=ann")).GetStatuses()[0].GetCurrentLimit()
		if got.GetUnit() != tc.want || got.GetUnitMultiplier().GetValue() != tc.multiple || got.GetRequestsPerUnit() != uint32(min(tc.rate.Limit, 1<<32-1)) {
			t.Errorf("%+v: got %v, want %v of %v", tc.rate, got, tc.multiple, tc.want)
		}
	}
}

func TestInvalidCalls(t *testing.T) {
	s := serve(t, enforcing(t, newStore(frozen), policyOf(limitOf("user", 10, hour))))
	many := func(n int, s string) []string {
		return strings.Split(strings.TrimSuffix(strings.Repeat(s+"|", n), "|"), "|")
	}
	negative := call("checkout", "user=ann")
	negative.Descriptors[0].IsNegativeHits = true
	for name, tc := range map[string]struct {
		in   *ratelimitv3.RateLimitRequest
		want string // empty: it is valid
	}{
		"no descriptors":       {call("checkout"), "descriptors is empty"},
		"16 descriptors":       {call("checkout", many(16, "user=ann")...), ""},
		"17 descriptors":       {call("checkout", many(17, "user=ann")...), "descriptors has 17 entries, more than 16"},
		"no entries":           {call("checkout", "user=ann", ""), "descriptors[1].entries is empty"},
		"16 entries":           {call("checkout", strings.Repeat(" a=b", 16)), ""},
		"17 entries":           {call("checkout", strings.Repeat(" a=b", 17)), "descriptors[0].entries has 17 entries, more than 16"},
		"an entry without key": {call("checkout", "user=ann =b"), "descriptors[0].entries[1].key is empty"},
		"a long domain":        {call(strings.Repeat("d", 513), "user=ann"), "domain has 513 bytes"},
		"negative hits":        {negative, "descriptors[0].is_negative_hits is set"},
		"a large message":      {call("checkout", "user="+strings.Repeat("a", 1<<20-64)), ""},
	} {
		t.Run(name, func(t *testing.T) {
			before := s.result(t, "invalid")
			_, err := s.ShouldRateLimit(t.Context(), tc.in)
			switch {
			case tc.want == "" && err != nil:
				t.Error(err)
			case tc.want == "":
			case status.Code(err) != codes.InvalidArgument || !strings.Contains(err.Error(), tc.want):
				t.Errorf("got %v, want %q", err, tc.want)
			case s.result(t, "invalid") != before+1:
				t.Error("it is not counted")
			}
		})
	}
	if _, err := s.ShouldRateLimit(t.Context(), call("checkout", "user="+strings.Repeat("a", 1<<20))); status.Code(err) != codes.ResourceExhausted {
		t.Errorf("a message that is too large: %v", err)
	}
}

// TestOverridesAreIgnored: the limit of the policy holds whatever the client says.
func TestOverridesAreIgnored(t *testing.T) {
	s := serve(t, enforcing(t, newStore(frozen), policyOf(limitOf("user", 1, hour))))
	in := call("checkout", "user=ann")
	in.Descriptors[0].Limit = &commonv3.RateLimitDescriptor_RateLimitOverride{RequestsPerUnit: 1000}
	s.shouldRateLimit(t, in)
	if out := s.shouldRateLimit(t, in); out.GetOverallCode() != ratelimitv3.RateLimitResponse_OVER_LIMIT {
		t.Errorf("got %v", out)
	}
	if n, err := testutil.GatherAndCount(s.Registry, "weir_rls_ignored_overrides_total"); err != nil || n != 1 {
		t.Errorf("%d series, %v", n, err)
	}
}

// TestResults counts what becomes of calls.
func TestResults(t *testing.T) {
	s := serve(t, enforcing(t, newStore(frozen), policyOf(limitOf("user", 1, hour))))
	for _, in := range []*ratelimitv3.RateLimitRequest{
		call("checkout", "user=ann"), call("checkout", "user=ann"), call("envoy", "user=ann"), call("*", "path=/"),
	} {
		s.shouldRateLimit(t, in)
	}
	for name, want := range map[string]float64{"ok": 2, "over_limit": 1, "unknown_domain": 1, "failed": 0} {
		if got := s.result(t, name); got != want {
			t.Errorf("%s: %v, want %v", name, got, want)
		}
	}
}

func TestShadowIsNeverOverLimit(t *testing.T) {
	p := policyOf(limitOf("user", 1, hour))
	p.Mode = policy.Shadow
	s := serve(t, enforcing(t, newStore(frozen), p))
	for range 3 {
		out := s.shouldRateLimit(t, call("checkout", "user=ann"))
		if out.GetOverallCode() != ratelimitv3.RateLimitResponse_OK || len(out.GetResponseHeadersToAdd()) > 0 {
			t.Errorf("got %v", out)
		}
	}
}

// TestTheStoreIsAway: the policy says what happens then.
func TestTheStoreIsAway(t *testing.T) {
	for action, want := range map[policy.Action]ratelimitv3.RateLimitResponse_Code{
		policy.Allow: ratelimitv3.RateLimitResponse_OK, policy.Deny: ratelimitv3.RateLimitResponse_OVER_LIMIT,
	} {
		p := policyOf(limitOf("user", 1, hour))
		p.OnStoreUnavailable = action
		s := serve(t, enforcing(t, away{}, p))
		out := s.shouldRateLimit(t, call("checkout", "user=ann"))
		if out.GetOverallCode() != want {
			t.Errorf("%s: got %v", action, out)
		}
		headers := out.GetResponseHeadersToAdd()
		if denied := action == policy.Deny; denied != (len(headers) == 1 && headers[0].GetKey() == "Retry-After") {
			t.Errorf("%s: headers %v", action, headers)
		}
	}
}

// away is a store that cannot be reached.
type away struct{}

func (away) Apply(context.Context, store.Key, limiter.Params, limiter.Command) (limiter.Result, error) {
	return limiter.Result{}, &store.UnavailableError{Store: "test", Cause: errors.New("away")}
}

// decider decides by a function.
type decider func(ctx context.Context) (enforce.Ruling, error)

func (d decider) DecideDescriptors(ctx context.Context, _ string, _ []enforce.Descriptor) (enforce.Ruling, error) {
	return d(ctx)
}

// DecideHeld finds nothing that is held.
func (decider) DecideHeld(string, []enforce.Descriptor) (enforce.Ruling, error) {
	return enforce.Ruling{}, twotier.ErrNotHeld
}

func TestADefectIsNeverOK(t *testing.T) {
	for name, tc := range map[string]struct {
		decide decider
		panics float64
	}{
		"an error": {func(context.Context) (enforce.Ruling, error) {
			return enforce.Ruling{Allowed: true}, errors.New("secret")
		}, 0},
		"a panic": {func(context.Context) (enforce.Ruling, error) { panic("secret") }, 1},
	} {
		t.Run(name, func(t *testing.T) {
			s := serve(t, tc.decide)
			_, err := s.ShouldRateLimit(t.Context(), call("checkout", "user=ann"))
			if status.Code(err) != codes.Internal || strings.Contains(err.Error(), "secret") {
				t.Errorf("got %v", err)
			}
			if n := testutil.ToFloat64(s.Errors); n != 1 {
				t.Errorf("%v errors are counted", n)
			}
			if n := testutil.ToFloat64(s.Panics); n != tc.panics {
				t.Errorf("%v panics are counted, want %v", n, tc.panics)
			}
			if n := s.result(t, "failed"); n != 1 {
				t.Errorf("%v calls failed", n)
			}
		})
	}
}

// TestDrainAnswersCallsInFlight, and nothing new.
func TestDrainAnswersCallsInFlight(t *testing.T) {
	asked, answer := make(chan struct{}), make(chan struct{})
	s := serve(t, decider(func(context.Context) (enforce.Ruling, error) {
		close(asked)
		<-answer
		return enforce.Ruling{Allowed: true, Known: true}, nil
	}))
	result := make(chan error, 1)
	go func() {
		_, err := s.ShouldRateLimit(t.Context(), call("checkout", "user=ann"))
		result <- err
	}()
	<-asked
	drained := make(chan struct{})
	go func() {
		s.drain(t.Context())
		close(drained)
	}()
	eventually(t, func() bool { return !listens(t, s.address) })
	close(answer)
	if err := <-result; err != nil {
		t.Error(err)
	}
	<-drained
	if _, err := s.ShouldRateLimit(t.Context(), call("checkout", "user=ann")); status.Code(err) != codes.Unavailable {
		t.Errorf("after the drain: %v", err)
	}
}

func listens(t *testing.T, address string) bool {
	t.Helper()
	c, err := new(net.Dialer).DialContext(t.Context(), "tcp", address)
	if err != nil {
		return false
	}
	_ = c.Close()
	return true
}

// TestDrainHasAnEnd: what does not finish in time is cut off.
func TestDrainHasAnEnd(t *testing.T) {
	asked := make(chan struct{})
	s := serve(t, decider(func(ctx context.Context) (enforce.Ruling, error) {
		close(asked)
		<-ctx.Done()
		return enforce.Ruling{}, ctx.Err()
	}))
	result := make(chan error, 1)
	go func() {
		_, err := s.ShouldRateLimit(t.Context(), call("checkout", "user=ann"))
		result <- err
	}()
	<-asked
	grace, done := context.WithTimeout(t.Context(), 10*time.Millisecond)
	defer done()
	s.drain(grace)
	if err := <-result; err == nil {
		t.Error("the call was answered")
	}
}
