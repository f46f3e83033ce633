package rls

import (
	"bytes"
	"math"
	"testing"
	"time"

	ratelimitv3 "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"
	"google.golang.org/protobuf/proto"

	"github.com/weir-dev/weir/internal/sidecar/enforce"
	"github.com/weir-dev/weir/pkg/limiter"
	"github.com/weir-dev/weir/pkg/policy"
	"github.com/weir-dev/weir/pkg/twotier"
)

// TestAnswersAreAsProtoWritesThem: what proto reads it writes in the same bytes, and knows all of.
func TestAnswersAreAsProtoWritesThem(t *testing.T) {
	p := &policy.Policy{Name: "checkout", Response: policy.Response{IETF: true, XRateLimit: true, Quota: policy.Always}}
	state := func(window limiter.Micros, d twotier.Decision) enforce.QuotaState {
		rates := []limiter.Rate{{Limit: math.MaxUint32 + 5, Window: window}}
		return enforce.QuotaState{Policy: p, Limit: &policy.Limit{Name: "per-user", Rates: rates}, Params: limiter.Params{Rates: rates}, Decision: d}
	}
	for name, r := range map[string]enforce.Ruling{
		"nothing":            {},
		"no limit":           {Allowed: true, States: make([]enforce.QuotaState, 2)},
		"admissions":         {Allowed: true, States: []enforce.QuotaState{state(limiter.Second, twotier.Decision{Limit: 5}), state(10*60*limiter.Second, twotier.Decision{Limit: 5, Remaining: math.MaxInt64, ResetAfter: 3*time.Hour + 7})}},
		"a part of a second": {Allowed: true, States: []enforce.QuotaState{state(limiter.Second/2, twotier.Decision{Limit: 5, Remaining: 1, ResetAfter: time.Second})}},
	} {
		b := appendAnswer(nil, r)
		out := new(ratelimitv3.RateLimitResponse)
		if err := proto.Unmarshal(b, out); err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		again, err := proto.MarshalOptions{Deterministic: true}.Marshal(out)
		if err != nil || !bytes.Equal(again, b) {
			t.Errorf("%s: proto writes %x, %v, not %x", name, again, err, b)
		}
		if len(out.ProtoReflect().GetUnknown()) > 0 || len(out.GetStatuses()) != len(r.States) {
			t.Errorf("%s: read as %v", name, out)
		}
		for i, s := range out.GetStatuses() {
			d := r.States[i].Decision
			if s.GetLimitRemaining() != uint32(min(d.Remaining, math.MaxUint32)) || s.GetDurationUntilReset().AsDuration() != d.ResetAfter {
				t.Errorf("%s: status %v for %+v", name, s, d)
			}
		}
	}
}
