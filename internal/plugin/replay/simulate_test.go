package replay

import (
	"fmt"
	"math/rand/v2"
	"net/http"
	"testing"
	"time"

	"github.com/weir-dev/weir/pkg/limiter"
	"github.com/weir-dev/weir/pkg/policy"
)

// start is the begin of an hour.
var start = time.Date(2026, 11, 27, 9, 0, 0, 0, time.UTC)

func limitOf(name string, limit int64, window time.Duration, changes ...func(*policy.Limit)) policy.Limit {
	l := policy.Limit{Name: name, Rates: []limiter.Rate{{Limit: limit, Window: limiter.Micros(window.Microseconds())}}}
	for _, change := range changes {
		change(&l)
	}
	return l
}

func byClient(onMissing policy.OnMissing) func(*policy.Limit) {
	return func(l *policy.Limit) {
		l.Key = &policy.Key{Parts: []policy.KeyPart{{Type: policy.ClientIPKey}}, OnMissing: onMissing, MaxKeys: 100}
	}
}

func inShadow(l *policy.Limit) { l.Mode = policy.Shadow }

func policyOf(limits ...policy.Limit) policy.Policy {
	return policy.Policy{
		Namespace: "shop", Name: "checkout", Generation: 1, Mode: policy.Enforce, Store: policy.Store{Type: policy.ControllerStore},
		Consistency: policy.Consistency{Mode: policy.Strict}, OnStoreUnavailable: policy.Deny, Limits: limits,
	}
}

func simulationOf(t testing.TB, policies ...policy.Policy) *Simulation {
	t.Helper()
	s, err := NewSimulation(policy.Snapshot{Cluster: "test", Policies: policies})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func get(at time.Duration, client string) *Entry {
	return &Entry{Time: start.Add(at), Method: http.MethodGet, Target: "/", Client: client}
}

func add(t testing.TB, s *Simulation, all ...*Entry) {
	t.Helper()
	for _, e := range all {
		if err := s.Add(e); err != nil {
			t.Fatal(err)
		}
	}
}

// counts are what is compared of a result.
func counts(r Result) string {
	return fmt.Sprintf("%d/%d/%d/%d", r.Matched, r.Admitted, r.Refused, r.Missing)
}

func TestSimulations(t *testing.T) {
	anyOf := policyOf(limitOf("few", 1, time.Minute), limitOf("more", 2, time.Minute))
	anyOf.AnyOf = [][]string{{"few", "more"}}
	proxied := policyOf(limitOf("l", 1, time.Minute, byClient(policy.Reject)))
	proxied.ClientIP = policy.ClientIP{TrustedCIDRs: []string{"10.0.0.0/8"}}
	put := func(l *policy.Limit) { l.Match = []policy.Match{{Methods: []string{http.MethodPut}}} }
	four := []*Entry{get(0, "192.0.2.1"), get(1, "192.0.2.1"), get(2, "192.0.2.2"), get(3, "192.0.2.1")}
	for name, tc := range map[string]struct {
		policy  policy.Policy
		entries []*Entry
		want    []string // matched/admitted/refused/missing of each limit
	}{
		"a window":             {policyOf(limitOf("l", 3, time.Minute)), four, []string{"4/3/1/0"}},
		"a key":                {policyOf(limitOf("l", 2, time.Minute, byClient(policy.Skip))), four, []string{"4/3/1/0"}},
		"a match":              {policyOf(limitOf("l", 1, time.Minute, put)), four, []string{"0/0/0/0"}},
		"the client of a log":  {proxied, four, []string{"4/2/2/0"}},
		"two windows":          {policyOf(limitOf("l", 1, time.Minute)), []*Entry{get(59*time.Second, ""), get(60*time.Second, ""), get(61*time.Second, "")}, []string{"3/2/1/0"}},
		"a missing key shared": {policyOf(limitOf("l", 1, time.Minute, byClient(policy.Shared))), []*Entry{get(0, ""), get(0, "")}, []string{"2/1/1/2"}},
		"a missing key":        {policyOf(limitOf("l", 1, time.Minute, byClient(policy.Skip))), []*Entry{get(0, ""), get(0, "")}, []string{"2/0/0/2"}},
		"a missing key refused": {policyOf(limitOf("l", 1, time.Minute, byClient(policy.Reject))), []*Entry{get(0, "")}, []string{
			"1/0/1/1",
		}},
		// The grant of the first limit to a request that the second refuses is given back.
		"one of two limits refuses":           {policyOf(limitOf("wide", 3, time.Minute), limitOf("narrow", 1, time.Minute, byClient(policy.Skip))), four, []string{"4/2/0/0", "4/2/2/0"}},
		"a limit in Shadow refuses nothing":   {policyOf(limitOf("wide", 3, time.Minute), limitOf("narrow", 1, time.Minute, inShadow)), four, []string{"4/3/1/0", "3/1/2/0"}},
		"one of a group has to admit":         {anyOf, four, []string{"4/1/1/0", "3/2/1/0"}},
		"a request that is older than before": {policyOf(limitOf("l", 1, time.Minute)), []*Entry{get(61*time.Second, ""), get(0, "")}, []string{"2/1/1/0"}},
	} {
		t.Run(name, func(t *testing.T) {
			s := simulationOf(t, tc.policy)
			add(t, s, tc.entries...)
			for i, r := range s.Results(3) {
				if got := counts(r); got != tc.want[i] {
					t.Errorf("limit %s: %s, want %s", r.Limit, got, tc.want[i])
				}
			}
		})
	}
}

func TestResults(t *testing.T) {
	s := simulationOf(t, policyOf(limitOf("l", 1, time.Minute, byClient(policy.Skip))))
	for minute, n := range []int{2, 5, 3} {
		for range n {
			add(t, s, get(time.Duration(minute)*time.Minute, "192.0.2.1"))
		}
	}
	add(t, s, get(3*time.Minute, "192.0.2.2"), get(3*time.Minute, "192.0.2.2"))
	r := s.Results(1)[0]
	if len(r.Top) != 1 || r.Top[0] != (Refused{"192.0.2.1", 7}) || r.WorstMinute.Refused != 4 || !r.WorstMinute.Start.Equal(start.Add(time.Minute)) || r.Percent != 66.6 {
		t.Errorf("it is %+v, worst %+v", r, r.WorstMinute)
	}
	add(t, s, get(0, "192.0.2.2"))
	if s.Late() != 1 {
		t.Errorf("%d are late, want 1", s.Late())
	}
}

// TestLeasesAreLeftOut: a limit without windows admits its whole burst, though leases set aside
// a part of it.
func TestLeasesAreLeftOut(t *testing.T) {
	bucket := limitOf("l", 10, time.Second, func(l *policy.Limit) {
		l.Algorithm, l.Lifetime, l.Rates[0].Burst = policy.TokenBucket, 500*limiter.Millisecond, 20
		l.Key = &policy.Key{Parts: []policy.KeyPart{{Type: policy.ClientIPKey}}, OnMissing: policy.Skip, MaxKeys: 10}
		l.Overrides = []policy.Override{{Values: []policy.Value{{"192.0.2.2"}}, Rates: []limiter.Rate{{Limit: 10, Window: limiter.Second, Burst: 30}}}}
	})
	p := policyOf(bucket)
	p.Consistency = policy.Consistency{Mode: policy.Leased, Size: policy.Fixed, Batch: 1, Expiry: policy.Coupled}
	for client, want := range map[string]int64{"192.0.2.1": 20, "192.0.2.2": 30} {
		s := simulationOf(t, p)
		for range 40 {
			add(t, s, get(0, client))
		}
		if r := s.Results(0)[0]; r.Admitted != want {
			t.Errorf("%s: %d are admitted, want %d", client, r.Admitted, want)
		}
	}
}

// TestSweptCountersDecideAlike: a simulation that never drops a counter decides the same.
func TestSweptCountersDecideAlike(t *testing.T) {
	for seed := range uint64(20) {
		random := rand.New(rand.NewPCG(seed, 1))
		p := policyOf(
			limitOf("window", 3, 5*time.Minute, byClient(policy.Skip)),
			limitOf("sum", 4, 3*time.Minute, byClient(policy.Skip), func(l *policy.Limit) { l.Algorithm = policy.SlidingLog }),
			limitOf("bucket", 2, time.Minute, byClient(policy.Skip), func(l *policy.Limit) { l.Algorithm = policy.GCRA }),
		)
		sweeping, keeping := simulationOf(t, p), simulationOf(t, p)
		var at time.Duration
		for range 400 {
			at += time.Duration(random.IntN(60)) * time.Second
			client := fmt.Sprintf("192.0.2.%d", random.IntN(6))
			add(t, sweeping, get(at, client))
			keeping.swept = limiter.MaxInstant
			add(t, keeping, get(at, client))
		}
		kept := 0
		for i, r := range sweeping.Results(9) {
			if other := keeping.Results(9)[i]; counts(r) != counts(other) {
				t.Errorf("seed %d, limit %s: %s, and %s without sweeping", seed, r.Limit, counts(r), counts(other))
			}
			kept += len(sweeping.limits[i].counters)
		}
		if kept > 3*6 {
			t.Errorf("%d counters are kept", kept)
		}
	}
}

func TestRequestsThatCannotBeMade(t *testing.T) {
	if err := simulationOf(t, policyOf(limitOf("l", 1, time.Second))).Add(&Entry{Time: start, Method: http.MethodGet, Target: "no path"}); err == nil {
		t.Error("a target without a path is decided")
	}
}

func BenchmarkAdd(b *testing.B) {
	s := simulationOf(b, policyOf(limitOf("l", 1, time.Minute, byClient(policy.Skip))))
	e := get(0, "192.0.2.1")
	for b.Loop() {
		add(b, s, e)
	}
}
