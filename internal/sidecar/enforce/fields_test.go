package enforce

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/weir-dev/weir/internal/fleetpb"
	"github.com/weir-dev/weir/internal/sidecar/count"
	"github.com/weir-dev/weir/internal/testing/fieldtest"
	"github.com/weir-dev/weir/pkg/limiter"
	"github.com/weir-dev/weir/pkg/policy"
	"github.com/weir-dev/weir/pkg/store"
	"github.com/weir-dev/weir/pkg/store/memory"
	"github.com/weir-dev/weir/pkg/twotier"
)

// A decided is all that an event is made of.
type decided struct {
	Value    string
	Cost     int64
	Decision twotier.Decision
	Since    limiter.Instant
	Coupled  bool
	Shadow   bool
	Kept     bool // the decision is one of a limiter that keeps the value
}

// kept returns a decision of a limiter that keeps the value.
func kept(t *testing.T, value string) twotier.Decision {
	t.Helper()
	l, err := twotier.New(twotier.Config{
		Params: limiter.Params{Generation: 1, Rates: []limiter.Rate{{Limit: 1, Window: limiter.Day}}},
		Size:   twotier.Size{Batch: 1}, MaxKeys: 1, OnUnavailable: twotier.Deny,
	}, memory.New(memory.Options{Clock: func() limiter.Instant { return 400 * limiter.Instant(limiter.Day) }, First: true}))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close(context.Background()) }) // t.Context is done by then
	d, err := l.Acquire(t.Context(), twotier.Request{Value: value, Cost: 1})
	if err != nil || !d.Allowed {
		t.Fatalf("%+v, %v", d, err)
	}
	return d
}

func TestEveryFieldOfADecisionIsCounted(t *testing.T) {
	windows := &limiter.Windows{N: 1}
	windows.Open[0] = limiter.OpenWindow{Rate: limiter.Rate{Limit: 1, Window: 2, Burst: 3, Offset: 4, Monthly: true}, Index: 5, Granted: 6}
	in := &decided{
		Value: "v", Cost: 7, Since: 8, Coupled: true, Shadow: true,
		Decision: twotier.Decision{
			Source: twotier.FromLocalShare, ResetAfter: 9 * time.Second, Windows: windows, LocalShare: 10, Paid: 11,
		},
	}
	admitted := kept(t, in.Value)
	fieldtest.Matter(t, []*decided{in}, func(d *decided) (any, error) {
		l := &limit{CompiledLimit: &policy.CompiledLimit{Policy: &policy.Policy{Since: d.Since}}, windowCoupled: d.Coupled, shadow: d.Shadow}
		s := share{limit: l, value: d.Value, cost: d.Cost, decision: d.Decision}
		if d.Kept {
			s.decision = admitted
		}
		return s.event(), nil
	}, "Decision.Reason", "Decision.Limit", "Decision.Remaining", "Decision.RetryAfter", "Decision.Delay") // these are not counted
}

func TestEveryFieldOfAnEngineIsReported(t *testing.T) {
	in := &twotier.Stats{
		RoundTrips: 1, ActiveKeys: 2, Full: twotier.MaxKeysBound, SharedKeys: 4, CutOff: errors.New("gone"), Learning: limiter.Amnesia, LearningFor: 3 * time.Microsecond,
	}
	other := *in
	other.Full = twotier.MemoryBound
	fieldtest.Matter(t, []*twotier.Stats{in, &other}, func(s *twotier.Stats) (any, error) {
		r := &fleetpb.LimitReport{}
		addStats(r, s)
		return []any{r.GetRoundTripsTotal(), r.GetActiveKeys(), r.GetKeysBound(), r.GetSharedKeys(), r.GetStoreError(), r.GetLearningReason(), r.GetLearningMicros()}, nil
	}, "Stats.Errors", "Stats.Promised", "Stats.Slow", "Stats.CutOffSince") // which are metrics
}

// A counting is all that the counts of a limit depend on.
type counting struct {
	Generation         int64
	Rates              []limiter.Rate
	Key                *policy.Key
	Lifetime, MaxDelay limiter.Micros
	Gold               int64 // what a value with a limit of its own is admitted
	Holders, Clusters  int64
}

func TestEveryFieldOfALimitReachesItsCounts(t *testing.T) {
	leased := &counting{
		Generation: 1, Rates: []limiter.Rate{{Limit: 2, Window: 3, Burst: 4, Offset: 5, Monthly: true}}, Key: &policy.Key{MaxKeys: 6},
		Lifetime: 7, Gold: 8, Holders: 9, Clusters: 11,
	}
	queued := *leased
	queued.Lifetime, queued.MaxDelay = 0, 10
	fieldtest.Matter(t, []*counting{leased, &queued}, func(c *counting) (any, error) {
		l := &limit{
			CompiledLimit: &policy.CompiledLimit{
				Policy: &policy.Policy{Generation: c.Generation},
				Limit:  &policy.Limit{Rates: c.Rates, Key: c.Key, Lifetime: c.Lifetime, MaxDelay: c.MaxDelay, Clusters: c.Clusters},
			},
			overrides: map[string]limiter.Params{"gold": {Rates: []limiter.Rate{{Limit: c.Gold}}}},
		}
		return l.settings(c.Holders), nil
	}, "Key.Parts", "Key.OnMissing") // which say what is counted, and not how
}

func TestFieldsOfALimit(t *testing.T) {
	compile := func(change func(*policy.Limit)) *policy.CompiledLimit {
		l := policy.Limit{Name: "l", Rates: []limiter.Rate{{Limit: 10, Window: limiter.Second}}}
		change(&l)
		set, err := policy.Compile(policy.Snapshot{Cluster: "c", Policies: []policy.Policy{{
			Namespace: "n", Name: "p", Generation: 1, Mode: policy.Enforce, Store: policy.Store{Type: policy.ControllerStore},
			Consistency: policy.Consistency{Mode: policy.Strict}, OnStoreUnavailable: policy.Deny, Limits: []policy.Limit{l},
		}}})
		if err != nil {
			t.Fatal(err)
		}
		return set.Limits[0]
	}
	windows := newLimit("c", compile(func(*policy.Limit) {}), false)
	bucket := newLimit("c", compile(func(l *policy.Limit) { l.Algorithm, l.Mode = policy.TokenBucket, policy.Shadow }), false)
	want := store.Scope{Cluster: "c", Namespace: "n", Policy: "p", Limit: "l"}
	if windows.scope != want || windows.shadow || !windows.windowCoupled {
		t.Errorf("windows: %+v", windows)
	}
	if bucket.scope != want || !bucket.shadow || bucket.windowCoupled {
		t.Errorf("a bucket in shadow: %+v", bucket)
	}
	if got := windows.name(); got != (count.Name{Namespace: "n", Policy: "p", Limit: "l"}) {
		t.Errorf("it is named %+v", got)
	}

	s := share{limit: windows, value: "v", cost: 3, decision: twotier.Decision{Allowed: true, Limit: 10, Remaining: 4}}
	admits := QuotaState{Policy: windows.Policy, Limit: windows.Limit, Params: windows.params("v"), Decision: s.decision, cost: 3}
	if diff := cmp.Diff(admits, quotaStateOf(s, nil), cmp.AllowUnexported(QuotaState{}), cmpopts.IgnoreUnexported(twotier.Decision{})); diff != "" {
		t.Errorf("of an admission (-want +got):\n%s", diff)
	}
	why := &Refusal{Policy: windows.Policy, Limit: windows.Limit, Params: windows.params("v"), Decision: twotier.Decision{Remaining: 4}}
	refuses := QuotaState{Policy: why.Policy, Limit: why.Limit, Params: why.Params, Decision: why.Decision, Refusal: why}
	if diff := cmp.Diff(refuses, quotaStateOf(share{}, why), cmp.AllowUnexported(QuotaState{}), cmpopts.IgnoreUnexported(twotier.Decision{})); diff != "" {
		t.Errorf("of a refusal (-want +got):\n%s", diff)
	}
}
