package conformance

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	commonv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/common/ratelimit/v3"
	ratelimitv3 "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"
	typev3 "github.com/envoyproxy/go-control-plane/envoy/type/v3"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/weir-dev/weir/pkg/limiter"
	"github.com/weir-dev/weir/pkg/policy"
)

// rateLimitConfig has the limits for envoyproxy/ratelimit.
const rateLimitConfig = `domain: checkout
descriptors:
- key: user
  rate_limit: {unit: day, requests_per_unit: 5}
- key: path
  rate_limit: {unit: day, requests_per_unit: 3}
- key: plan
  value: gold
  descriptors:
  - key: member
    rate_limit: {unit: day, requests_per_unit: 7}
- key: tenant
  descriptors:
  - key: method
    rate_limit: {unit: day, requests_per_unit: 4}
- key: trial
  rate_limit: {unit: day, requests_per_unit: 1}
  shadow_mode: true
- key: quick
  rate_limit: {unit: second, requests_per_unit: 50}
- key: minute
  rate_limit: {unit: minute, requests_per_unit: 50}
- key: hour
  rate_limit: {unit: hour, requests_per_unit: 50}
- key: wide
  rate_limit: {unit: day, requests_per_unit: 200}
`

// rateLimitPolicies are the same limits for sidecars, born in the memories of a store.
func rateLimitPolicies(address string, born []limiter.MemoryID) policy.Snapshot {
	per := func(name string, limit int64, window limiter.Micros, match ...policy.DescriptorMatch) policy.Limit {
		l := policy.Limit{
			Name: name, Match: []policy.Match{{Descriptors: match}}, Rates: []limiter.Rate{{Limit: limit, Window: window}},
			Key: &policy.Key{OnMissing: policy.Skip, MaxKeys: 1000}, Retention: limiter.Retention{Born: born},
		}
		for _, m := range match {
			l.Key.Parts = append(l.Key.Parts, policy.KeyPart{Type: policy.DescriptorKey, Name: m.Key})
		}
		return l
	}
	key := func(key string) policy.DescriptorMatch { return policy.DescriptorMatch{Key: key} }
	trial := per("trial", 1, limiter.Day, key("trial"))
	trial.Mode = policy.Shadow
	return policy.Snapshot{Cluster: "conformance", Policies: []policy.Policy{{
		Namespace: "conformance", Name: "checkout", Generation: 1, Mode: policy.Enforce,
		Store:       policy.Store{Type: policy.RedisStore, Address: address},
		Consistency: policy.Consistency{Mode: policy.Strict}, OnStoreUnavailable: policy.Deny,
		Response: policy.Response{IETF: true, XRateLimit: true, Quota: policy.Always, StatusCode: 429, Body: policy.ProblemJSON},
		Limits: []policy.Limit{
			per("user", 5, limiter.Day, key("user")), per("path", 3, limiter.Day, key("path")),
			per("gold", 7, limiter.Day, policy.DescriptorMatch{Key: "plan", Value: "gold"}, key("member")),
			per("tenant", 4, limiter.Day, key("tenant"), key("method")), trial,
			per("quick", 50, limiter.Second, key("quick")), per("minute", 50, 60*limiter.Second, key("minute")),
			per("hour", 50, 3600*limiter.Second, key("hour")), per("wide", 200, limiter.Day, key("wide")),
		},
	}}}
}

// A descriptor is one of a call.
type descriptor struct{ *commonv3.RateLimitDescriptor }

// d returns a descriptor of keys and values. A # stands for the number of the case.
func d(pairs ...string) descriptor {
	out := &commonv3.RateLimitDescriptor{}
	for pair := range slices.Chunk(pairs, 2) {
		out.Entries = append(out.Entries, &commonv3.RateLimitDescriptor_Entry{Key: pair[0], Value: pair[1]})
	}
	return descriptor{out}
}

// hits sets what the descriptor costs.
func (d descriptor) hits(n uint64) descriptor {
	d.HitsAddend = wrapperspb.UInt64(n)
	return d
}

// asked is a call.
type asked struct{ in *ratelimitv3.RateLimitRequest }

func ask(ds ...descriptor) *asked { return askOf("checkout", ds...) }

func askOf(domain string, ds ...descriptor) *asked {
	a := &asked{in: &ratelimitv3.RateLimitRequest{Domain: domain, HitsAddend: 1}}
	for _, d := range ds {
		a.in.Descriptors = append(a.in.Descriptors, d.RateLimitDescriptor)
	}
	return a
}

// hits sets what the call costs.
func (a *asked) hits(n uint32) *asked {
	a.in.HitsAddend = n
	return a
}

// request returns the call in a case of that number.
func (a *asked) request(number int) *ratelimitv3.RateLimitRequest {
	in := &ratelimitv3.RateLimitRequest{Domain: a.in.GetDomain(), HitsAddend: a.in.GetHitsAddend()}
	for _, of := range a.in.GetDescriptors() {
		d := &commonv3.RateLimitDescriptor{Limit: of.GetLimit(), HitsAddend: of.GetHitsAddend(), IsNegativeHits: of.GetIsNegativeHits()}
		for _, e := range of.GetEntries() {
			value := strings.ReplaceAll(e.GetValue(), "#", fmt.Sprintf("case-%d", number))
			d.Entries = append(d.Entries, &commonv3.RateLimitDescriptor_Entry{Key: e.GetKey(), Value: value})
		}
		in.Descriptors = append(in.Descriptors, d)
	}
	return in
}

// describe says what was answered: the code and, of each descriptor, its code and what is left
// of its limit.
func describe(out *ratelimitv3.RateLimitResponse, err error, headers bool) string {
	if err != nil {
		return status.Code(err).String()
	}
	said := out.GetOverallCode().String()
	for i, s := range out.GetStatuses() {
		if i == 4 {
			said += fmt.Sprintf(" and %d more", len(out.GetStatuses())-i)
			break
		}
		said += " [" + s.GetCode().String()
		if l := s.GetCurrentLimit(); l != nil {
			said += fmt.Sprintf(" %d/%d %v", s.GetLimitRemaining(), l.GetRequestsPerUnit(), l.GetUnit())
		}
		said += "]"
	}
	for _, h := range out.GetResponseHeadersToAdd() {
		if headers {
			value, _, _ := strings.Cut(h.GetValue(), ";t=")
			if strings.Contains(h.GetKey(), "Reset") || h.GetKey() == "Retry-After" {
				value = "seconds" // which pass
			}
			said += fmt.Sprintf(" %s: %s", h.GetKey(), value)
		}
	}
	return said
}

// A rateLimitCase is calls one after the other.
type rateLimitCase struct {
	name    string
	calls   []*asked
	want    string // all answers
	other   string // those of envoyproxy/ratelimit where docs/envoy.md names a difference
	client  bool   // asked by the client of envoyproxy/ratelimit
	headers bool   // the fields that Envoy adds to its answer are judged
	at      func(t *testing.T, r *rateLimiter, number int) (string, error)
}

// rateLimitCases are all cases.
func rateLimitCases() []rateLimitCase {
	user, path := d("user", "#"), d("path", "#")
	override := d("user", "#")
	override.Limit = &commonv3.RateLimitDescriptor_RateLimitOverride{RequestsPerUnit: 1, Unit: typev3.RateLimitUnit_DAY}
	negative := d("user", "#").hits(2)
	negative.IsNegativeHits = true
	several := func(n int, of descriptor) (all []descriptor) {
		for range n {
			all = append(all, of)
		}
		return all
	}
	entries := func(n int) descriptor {
		out := d("user", "#")
		for i := range n - 1 {
			out.Entries = append(out.Entries, d(fmt.Sprintf("other%d", i), "x").Entries...)
		}
		return out
	}
	return []rateLimitCase{
		// Forms of descriptors, by the project's own client.
		{name: "a limit of each value, until it is used up", client: true, calls: []*asked{ask(user), ask(user), ask(user), ask(user), ask(user), ask(user)},
			want: "OK [OK 4/5 DAY]; OK [OK 3/5 DAY]; OK [OK 2/5 DAY]; OK [OK 1/5 DAY]; OK [OK 0/5 DAY]; OVER_LIMIT [OVER_LIMIT 0/5 DAY]"},
		{name: "values apart", client: true, calls: []*asked{ask(user), ask(d("user", "#-b")), ask(user)}, want: "OK [OK 4/5 DAY]; OK [OK 4/5 DAY]; OK [OK 3/5 DAY]"},
		{name: "two keys", client: true, calls: []*asked{ask(d("tenant", "#", "method", "GET")), ask(d("tenant", "#", "method", "PUT")), ask(d("tenant", "#", "method", "GET"))},
			want: "OK [OK 3/4 DAY]; OK [OK 3/4 DAY]; OK [OK 2/4 DAY]"},
		{name: "a key that is missing", client: true, calls: []*asked{ask(d("tenant", "#")), ask(d("method", "GET"))}, want: "OK [OK]; OK [OK]"},
		{name: "two keys in the other order", client: true, calls: []*asked{ask(d("method", "GET", "tenant", "#"))}, want: "OK [OK 3/4 DAY]", other: "OK [OK]"},
		{name: "an entry more than the limit names", client: true, calls: []*asked{ask(d("user", "#", "more", "x"))}, want: "OK [OK 4/5 DAY]", other: "OK [OK]"},
		{name: "a limit of one value", client: true, calls: []*asked{ask(d("plan", "gold", "member", "#")), ask(d("plan", "free", "member", "#")), ask(d("plan", "gold", "member", "#"))},
			want: "OK [OK 6/7 DAY]; OK [OK]; OK [OK 5/7 DAY]"},
		{name: "a key without a limit", client: true, calls: []*asked{ask(d("nothing", "#"))}, want: "OK [OK]"},
		{name: "an empty value", client: true, calls: []*asked{ask(d("user", "")), ask(d("user", ""))}, want: "OK [OK]; OK [OK]", other: "OK [OK 4/5 DAY]; OK [OK 3/5 DAY]"},
		{name: "two descriptors", client: true, calls: []*asked{ask(user, path), ask(path, user)}, want: "OK [OK 4/5 DAY] [OK 2/3 DAY]; OK [OK 1/3 DAY] [OK 3/5 DAY]"},
		{name: "one with a limit and one without", client: true, calls: []*asked{ask(user, d("nothing", "#"))}, want: "OK [OK 4/5 DAY] [OK]"},
		{name: "a limit in shadow", client: true, calls: []*asked{ask(d("trial", "#")), ask(d("trial", "#"))}, want: "OK [OK]; OK [OK]", other: "OK [OK 0/1 DAY]; OK [OK 0/1 DAY]"},
		{name: "units", client: true, calls: []*asked{ask(d("quick", "#")), ask(d("minute", "#")), ask(d("hour", "#"))}, want: "OK [OK 49/50 SECOND]; OK [OK 49/50 MINUTE]; OK [OK 49/50 HOUR]"},
		{name: "an unknown domain", client: true, calls: []*asked{askOf("nothing", user), askOf("other/checkout", user)}, want: "OK [OK]; OK [OK]"},
		{name: "the domain as namespace/name, and all of them", client: true, calls: []*asked{askOf("conformance/checkout", user), askOf("*", user)},
			want: "OK [OK 4/5 DAY]; OK [OK 3/5 DAY]", other: "OK [OK]; OK [OK]"},
		{name: "no domain", client: true, calls: []*asked{askOf("", user)}, want: "OK [OK 4/5 DAY]", other: "Unknown"},
		{name: "no descriptors", client: true, calls: []*asked{ask()}, want: "InvalidArgument", other: "Unknown"},
		{name: "an empty key", client: true, calls: []*asked{ask(d("", "#"))}, want: "InvalidArgument", other: "OK [OK]"},

		// Hits.
		{name: "hits_addend 0 of the call", calls: []*asked{ask(user).hits(0), ask(user).hits(0)}, want: "OK [OK 4/5 DAY]; OK [OK 3/5 DAY]"},
		{name: "hits_addend n", calls: []*asked{ask(user).hits(3), ask(user).hits(2), ask(user)}, want: "OK [OK 2/5 DAY]; OK [OK 0/5 DAY]; OVER_LIMIT [OVER_LIMIT 0/5 DAY]"},
		{name: "more hits than are left, then as many", calls: []*asked{ask(user).hits(3), ask(user).hits(3), ask(user).hits(2)},
			want: "OK [OK 2/5 DAY]; OVER_LIMIT [OVER_LIMIT 2/5 DAY]; OK [OK 0/5 DAY]", other: "OK [OK 2/5 DAY]; OVER_LIMIT [OVER_LIMIT 0/5 DAY]; OVER_LIMIT [OVER_LIMIT 0/5 DAY]"},
		{name: "more hits than the limit, then one", calls: []*asked{ask(user).hits(6), ask(user)},
			want: "OVER_LIMIT [OVER_LIMIT]; OK [OK 4/5 DAY]", other: "OVER_LIMIT [OVER_LIMIT 0/5 DAY]; OVER_LIMIT [OVER_LIMIT 0/5 DAY]"},
		{name: "the most hits of a call, then one", calls: []*asked{ask(user).hits(1<<32 - 1), ask(user)},
			want: "OVER_LIMIT [OVER_LIMIT]; OK [OK 4/5 DAY]", other: "OVER_LIMIT [OVER_LIMIT 0/5 DAY]; OVER_LIMIT [OVER_LIMIT 0/5 DAY]"},
		{name: "hits_addend of the descriptor", calls: []*asked{ask(d("user", "#").hits(2), d("path", "#").hits(3)).hits(9), ask(d("user", "#").hits(3), path).hits(2)},
			want:  "OK [OK 3/5 DAY] [OK 0/3 DAY]; OVER_LIMIT [OK 3/5 DAY] [OVER_LIMIT 0/3 DAY]",
			other: "OK [OK 3/5 DAY] [OK 0/3 DAY]; OVER_LIMIT [OK 0/5 DAY] [OVER_LIMIT 0/3 DAY]"},
		{name: "hits_addend 0 of the descriptor", calls: []*asked{ask(d("user", "#").hits(0)), ask(user), ask(d("user", "#").hits(0))},
			want: "OK [OK 5/5 DAY]; OK [OK 4/5 DAY]; OK [OK 4/5 DAY]"},
		{name: "hits_addend 0 of the descriptor when nothing is left", calls: []*asked{ask(user).hits(5), ask(d("user", "#").hits(0))},
			want: "OK [OK 0/5 DAY]; OVER_LIMIT [OVER_LIMIT 0/5 DAY]", other: "OK [OK 0/5 DAY]; OK [OK 0/5 DAY]"},
		{name: "hits that are negative", calls: []*asked{ask(user), ask(negative)}, want: "OK [OK 4/5 DAY]; InvalidArgument", other: "OK [OK 4/5 DAY]; OK [OK 2/5 DAY]"},

		// Several descriptors.
		{name: "one of two is over its limit", at: refusedByOneOfTwo,
			want:  "OK [OK 0/3 DAY]; OVER_LIMIT [OK 5/5 DAY] [OVER_LIMIT 0/3 DAY]; OK [OK 4/5 DAY]",
			other: "OK [OK 0/3 DAY]; OVER_LIMIT [OK 4/5 DAY] [OVER_LIMIT 0/3 DAY]; OK [OK 3/5 DAY]"},
		{name: "the same descriptor twice", calls: []*asked{ask(user, user)}, want: "OK [OK 4/5 DAY] [OK 4/5 DAY]", other: "OK [OK 4/5 DAY] [OK 3/5 DAY]"},
		{name: "one in shadow is over its limit", calls: []*asked{ask(d("trial", "#"), user), ask(d("trial", "#"), user)}, want: "OK [OK] [OK 4/5 DAY]; OK [OK] [OK 3/5 DAY]", other: "OK [OK 0/1 DAY] [OK 4/5 DAY]; OK [OK 0/1 DAY] [OK 3/5 DAY]"},
		{name: "16 descriptors", calls: []*asked{ask(several(16, d("nothing", "#"))...)}, want: "OK [OK] [OK] [OK] [OK] and 12 more"},
		{name: "17 descriptors", calls: []*asked{ask(several(17, d("nothing", "#"))...)}, want: "InvalidArgument", other: "OK [OK] [OK] [OK] [OK] and 13 more"},
		{name: "a descriptor without entries", calls: []*asked{ask(d())}, want: "InvalidArgument", other: "OK [OK]"},
		{name: "17 entries", calls: []*asked{ask(entries(17))}, want: "InvalidArgument", other: "OK [OK]"},
		{name: "a limit in the descriptor", calls: []*asked{ask(override), ask(override)},
			want: "OK [OK 4/5 DAY]; OK [OK 3/5 DAY]", other: "OK [OK 0/1 DAY]; OVER_LIMIT [OVER_LIMIT 0/1 DAY]"},
		{name: "fields for the answer", headers: true, calls: []*asked{ask(user, path), ask(d("nothing", "#"))},
			want:  `OK [OK 4/5 DAY] [OK 2/3 DAY] RateLimit-Policy: "path";q=3;w=86400 RateLimit: "path";r=2 X-RateLimit-Limit: 3 X-RateLimit-Remaining: 2 X-RateLimit-Reset: seconds; OK [OK]`,
			other: "OK [OK 4/5 DAY] [OK 2/3 DAY] RateLimit-Limit: 3 RateLimit-Remaining: 2 RateLimit-Reset: seconds; OK [OK]"},

		// Several callers, and callers that leave.
		{name: "400 calls at once of a limit of 200", at: ask(d("wide", "#")).together, want: "200 of 400"},
		{name: "the same with 3 hits each", at: ask(d("wide", "#")).hits(3).together, want: "66 of 400"},
		{name: "with two descriptors, where the narrower one decides", at: ask(d("wide", "#"), user).together, want: "5 of 400"},
		{name: "a deadline that passes while the store is silent", want: "DeadlineExceeded; then OK", at: func(t *testing.T, r *rateLimiter, number int) (string, error) {
			return ask(user).whilePaused(t, r, number, func(ctx context.Context) (context.Context, context.CancelFunc) {
				return context.WithTimeout(ctx, envoyTimeout)
			})
		}},
		{name: "a caller that leaves while the store is silent", want: "Canceled; then OK", at: func(t *testing.T, r *rateLimiter, number int) (string, error) {
			return ask(user).whilePaused(t, r, number, func(ctx context.Context) (context.Context, context.CancelFunc) {
				ctx, cancel := context.WithCancel(ctx)
				time.AfterFunc(envoyTimeout, cancel)
				return ctx, cancel
			})
		}},
		{name: "a caller that waits while the store is silent", want: "OVER_LIMIT; then OK", other: "OK; then OK", at: func(t *testing.T, r *rateLimiter, number int) (string, error) {
			return ask(user).whilePaused(t, r, number, context.WithCancel)
		}},
	}
}

// envoyTimeout is how long Envoy waits unless it is configured otherwise.
const envoyTimeout = 20 * time.Millisecond
