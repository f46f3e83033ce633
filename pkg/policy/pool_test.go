package policy_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/weir-dev/weir/pkg/concurrency/pool"
	"github.com/weir-dev/weir/pkg/concurrency/slots"
	"github.com/weir-dev/weir/pkg/limiter"
	"github.com/weir-dev/weir/pkg/policy"
)

// pooled returns a snapshot with a pool alone, changed by the given functions.
func pooled(changes ...func(*policy.Pool)) policy.Snapshot {
	p := policy.Pool{
		Namespace: "shop", Name: "checkout", Generation: 3,
		Mode:                policy.Enforce,
		Coordinator:         policy.Store{Type: policy.ControllerStore},
		Limit:               policy.LimitRange{Min: 1, Initial: 16, Max: 100},
		Algorithm:           policy.LimitAlgorithm{Type: policy.Gradient2, Baseline: rolling(), SmoothingPercent: 20, TolerancePercent: 150},
		Aggregate:           policy.Median,
		Allocation:          policy.EqualSplit,
		Handoff:             policy.Acknowledged,
		Heartbeat:           policy.Heartbeat{Interval: limiter.Second, LeaseTTL: 2 * limiter.Second, Eager: true, MinInterval: 100 * limiter.Millisecond},
		SelfFence:           policy.SelfFence{Margin: 500 * limiter.Millisecond, OnFenced: policy.Drain},
		OnCoordinatorOutage: policy.FailClosed,
		StatusCode:          503,
	}
	for _, change := range changes {
		change(&p)
	}
	return policy.Snapshot{Cluster: "test", Pool: &p}
}

func rolling() *policy.Baseline {
	return &policy.Baseline{Type: policy.RollingBaseline, Samples: 100}
}

// fullPool returns a snapshot with a pool in which every field is used.
func fullPool() policy.Snapshot {
	health := []policy.Match{{Paths: []policy.PathMatch{{Type: policy.Exact, Value: "/healthz"}}}}
	return pooled(func(p *policy.Pool) {
		p.Mode = policy.Shadow
		p.Coordinator = policy.Store{Type: policy.RedisStore, Address: "redis:6379", TLS: true, Secret: "shop/redis", SecretVersion: "7"}
		p.Algorithm = policy.LimitAlgorithm{
			Type: policy.AIMD, TolerancePercent: 150, BackoffPercent: 90, Ignore: health,
			Baseline: &policy.Baseline{Type: policy.MeasuredBaseline, Interval: 60 * limiter.Second, ProbeLimit: 4, ProbeSamples: 5},
		}
		p.Aggregate, p.Allocation, p.Handoff = policy.Minimum, policy.EqualSplit, policy.Occupancy
		p.SelfFence.OnFenced, p.OnCoordinatorOutage = policy.Abort, policy.LocalOnly
		p.Exempt = health
		p.Partitions = []policy.Partition{{Name: "live", GuaranteedPercent: 80, Match: health}, {Name: "rest", GuaranteedPercent: 20}}
		p.Queue = &policy.Queue{MaxLength: 100, MaxWait: 200 * limiter.Millisecond}
		p.StatusCode = 429
	})
}

// keyedPool has a limit per key.
func keyedPool() policy.Snapshot { return pooled(withKey) }

// keyQueuedPool has a queue for the slots of a value, besides.
func keyQueuedPool() policy.Snapshot { return pooled(withKey, withKeyQueue) }

func withKeyQueue(p *policy.Pool) {
	p.Key.Queue = &policy.Queue{MaxLength: 7, MaxWait: 50 * limiter.Millisecond}
}

func withKey(p *policy.Pool) {
	p.Key = &policy.PoolKey{Parts: []policy.KeyPart{{Type: policy.HeaderKey, Header: "x-tenant"}, {Type: policy.PathKey}}, OnMissing: policy.Skip, Limit: 20}
}

func TestEveryFieldOfAPoolIsKept(t *testing.T) {
	for _, want := range []policy.Snapshot{pooled(), fullPool(), keyedPool(), keyQueuedPool()} {
		data, _, err := policy.Encode(want)
		if err != nil {
			t.Fatal(err)
		}
		got, err := policy.Decode(data)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("decoded differs (-want +got):\n%s", diff)
		}
	}
}

// TestASnapshotFromBeforePools reads what pods carry that were injected before there
// were pools, and names it as it was named then.
func TestASnapshotFromBeforePools(t *testing.T) {
	const data = `{"cluster":"test","policies":[{"namespace":"shop","name":"checkout","generation":3,"mode":"Enforce","store":{"type":"Controller"},` +
		`"consistency":{"mode":"Leased","size":"Fixed","batch":10,"expiry":"Coupled"},"onStoreUnavailable":"LocalShare",` +
		`"limits":[{"name":"all","rates":[{"limit":100,"window":1000000}]}]}]}`
	got, err := policy.Decode([]byte(data))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(valid(), got); diff != "" {
		t.Errorf("decoded differs (-want +got):\n%s", diff)
	}
	if again, _, err := policy.Encode(got); err != nil || string(again) != data {
		t.Errorf("encoded again it is %s, %v; want the same bytes", again, err)
	}
}

func TestValidateNamesTheFieldOfAPool(t *testing.T) {
	fixed := func(p *policy.Pool) {
		p.Algorithm = policy.LimitAlgorithm{Type: policy.FixedLimit}
		p.Limit = policy.LimitRange{Min: 100, Initial: 100, Max: 100}
	}
	aimd := func(p *policy.Pool) {
		p.Algorithm = policy.LimitAlgorithm{Type: policy.AIMD, Baseline: rolling(), TolerancePercent: 100, BackoffPercent: 90}
	}
	baseline := func(change func(*policy.Baseline)) func(*policy.Pool) {
		return func(p *policy.Pool) { change(p.Algorithm.Baseline) }
	}
	measured := func(change func(*policy.Baseline)) func(*policy.Pool) {
		return func(p *policy.Pool) {
			p.Algorithm.Baseline = &policy.Baseline{Type: policy.MeasuredBaseline, Interval: limiter.Second, ProbeSamples: 1}
			change(p.Algorithm.Baseline)
		}
	}
	demand := func(p *policy.Pool) { p.Allocation = policy.DemandProportional }
	partitions := func(all ...policy.Partition) func(*policy.Pool) {
		return func(p *policy.Pool) { p.Partitions = all }
	}
	broken := []policy.Match{{Paths: []policy.PathMatch{{Type: policy.RegularExpression, Value: "("}}}}
	for name, tc := range map[string]struct {
		change []func(*policy.Pool)
		want   string // a part of the error
	}{
		"an exemption of descriptors": {[]func(*policy.Pool){func(p *policy.Pool) { p.Exempt = []policy.Match{{Descriptors: []policy.DescriptorMatch{{Key: "a"}}}} }}, "pool.exempt[0].descriptors"},
		"a name in upper case":        {[]func(*policy.Pool){func(p *policy.Pool) { p.Name = "Checkout" }}, "pool.name"},
		"no namespace":                {[]func(*policy.Pool){func(p *policy.Pool) { p.Namespace = "" }}, "pool.namespace"},
		"a negative generation":       {[]func(*policy.Pool){func(p *policy.Pool) { p.Generation = -1 }}, "pool.generation"},
		"no mode":                     {[]func(*policy.Pool){func(p *policy.Pool) { p.Mode = "" }}, "pool.mode"},
		"no coordinator":              {[]func(*policy.Pool){func(p *policy.Pool) { p.Coordinator = policy.Store{} }}, "pool.coordinator.type"},
		"no max":                      {[]func(*policy.Pool){func(p *policy.Pool) { p.Limit = policy.LimitRange{} }}, "pool.limit.max"},
		"a max beyond the core's":     {[]func(*policy.Pool){func(p *policy.Pool) { p.Limit.Max = pool.MaxLimit + 1 }}, "pool.limit.max"},
		"no min":                      {[]func(*policy.Pool){func(p *policy.Pool) { p.Limit.Min = 0 }}, "pool.limit.min"},
		"a min above max":             {[]func(*policy.Pool){func(p *policy.Pool) { p.Limit.Min, p.Limit.Initial = 101, 101 }}, "pool.limit.min"},
		"an initial below min":        {[]func(*policy.Pool){func(p *policy.Pool) { p.Limit.Min = 17 }}, "pool.limit.initial"},
		"an initial above max":        {[]func(*policy.Pool){func(p *policy.Pool) { p.Limit.Initial = 101 }}, "pool.limit.initial"},
		"a range of Fixed":            {[]func(*policy.Pool){fixed, func(p *policy.Pool) { p.Limit.Min = 1 }}, "pool.limit"},
		"no algorithm":                {[]func(*policy.Pool){func(p *policy.Pool) { p.Algorithm.Type = "" }}, "pool.algorithm.type"},
		"a knob of Fixed":             {[]func(*policy.Pool){fixed, func(p *policy.Pool) { p.Algorithm.TolerancePercent = 200 }}, "pool.algorithm"},
		"a baseline of Fixed":         {[]func(*policy.Pool){fixed, func(p *policy.Pool) { p.Algorithm.Baseline = rolling() }}, "pool.algorithm"},
		"no baseline":                 {[]func(*policy.Pool){func(p *policy.Pool) { p.Algorithm.Baseline = nil }}, "pool.algorithm.baseline"},
		"no type of baseline":         {[]func(*policy.Pool){baseline(func(b *policy.Baseline) { b.Type = "" })}, "pool.algorithm.baseline.type"},
		"a baseline of nothing":       {[]func(*policy.Pool){baseline(func(b *policy.Baseline) { b.Samples = 0 })}, "pool.algorithm.baseline.samples"},
		"a baseline that takes space": {[]func(*policy.Pool){baseline(func(b *policy.Baseline) { b.Samples = policy.MaxBaselineSamples + 1 })}, "pool.algorithm.baseline.samples"},
		"Rolling with an interval":    {[]func(*policy.Pool){baseline(func(b *policy.Baseline) { b.Interval = limiter.Second })}, "pool.algorithm.baseline.interval"},
		"Rolling with a probe limit":  {[]func(*policy.Pool){baseline(func(b *policy.Baseline) { b.ProbeLimit = 1 })}, "pool.algorithm.baseline.probeLimit"},
		"Rolling with probe samples":  {[]func(*policy.Pool){baseline(func(b *policy.Baseline) { b.ProbeSamples = 1 })}, "pool.algorithm.baseline.probeSamples"},
		"Measured with samples":       {[]func(*policy.Pool){measured(func(b *policy.Baseline) { b.Samples = 1 })}, "pool.algorithm.baseline.samples"},
		"a tolerance below all":       {[]func(*policy.Pool){func(p *policy.Pool) { p.Algorithm.TolerancePercent = 99 }}, "pool.algorithm.tolerancePercent"},
		"no smoothing":                {[]func(*policy.Pool){func(p *policy.Pool) { p.Algorithm.SmoothingPercent = 0 }}, "pool.algorithm.smoothingPercent"},
		"smoothing of AIMD":           {[]func(*policy.Pool){aimd, func(p *policy.Pool) { p.Algorithm.SmoothingPercent = 1 }}, "pool.algorithm.smoothingPercent"},
		"no backoff":                  {[]func(*policy.Pool){aimd, func(p *policy.Pool) { p.Algorithm.BackoffPercent = 0 }}, "pool.algorithm.backoffPercent"},
		"a backoff of Gradient2":      {[]func(*policy.Pool){func(p *policy.Pool) { p.Algorithm.BackoffPercent = 90 }}, "pool.algorithm.backoffPercent"},
		"measurements at once":        {[]func(*policy.Pool){measured(func(b *policy.Baseline) { b.Interval = 9 })}, "pool.algorithm.baseline.interval"},
		"a probe below nothing":       {[]func(*policy.Pool){measured(func(b *policy.Baseline) { b.ProbeLimit = -1 })}, "pool.algorithm.baseline.probeLimit"},
		"a probe without samples":     {[]func(*policy.Pool){measured(func(b *policy.Baseline) { b.ProbeSamples = 0 })}, "pool.algorithm.baseline.probeSamples"},
		"an expression to ignore":     {[]func(*policy.Pool){func(p *policy.Pool) { p.Algorithm.Ignore = broken }}, "pool.algorithm.ignore[0].paths[0].value"},
		"no aggregate":                {[]func(*policy.Pool){func(p *policy.Pool) { p.Aggregate = "" }}, "pool.aggregate"},
		"no allocation":               {[]func(*policy.Pool){func(p *policy.Pool) { p.Allocation = "" }}, "pool.allocation"},
		"no handoff":                  {[]func(*policy.Pool){func(p *policy.Pool) { p.Handoff = "" }}, "pool.handoff"},
		"no interval":                 {[]func(*policy.Pool){func(p *policy.Pool) { p.Heartbeat.Interval = 0 }}, "pool.heartbeat.interval"},
		"an interval of the lease":    {[]func(*policy.Pool){func(p *policy.Pool) { p.Heartbeat.Interval = 2 * limiter.Second }}, "pool.heartbeat.interval"},
		"a lease of over a minute":    {[]func(*policy.Pool){func(p *policy.Pool) { p.Heartbeat.LeaseTTL = policy.MaxLeaseTTL + 1 }}, "pool.heartbeat.leaseTTL"},
		"no minInterval":              {[]func(*policy.Pool){func(p *policy.Pool) { p.Heartbeat.MinInterval = 0 }}, "pool.heartbeat.minInterval"},
		"a minInterval over interval": {[]func(*policy.Pool){func(p *policy.Pool) { p.Heartbeat.MinInterval = limiter.Second + 1 }}, "pool.heartbeat.minInterval"},
		"a negative margin":           {[]func(*policy.Pool){func(p *policy.Pool) { p.SelfFence.Margin = -1 }}, "pool.selfFence.margin"},
		"a margin of all that is left": {
			[]func(*policy.Pool){func(p *policy.Pool) { p.SelfFence.Margin = limiter.Second }}, "pool.selfFence.margin",
		},
		"no onFenced":                     {[]func(*policy.Pool){func(p *policy.Pool) { p.SelfFence.OnFenced = "" }}, "pool.selfFence.onFenced"},
		"no action":                       {[]func(*policy.Pool){func(p *policy.Pool) { p.OnCoordinatorOutage = "" }}, "pool.onCoordinatorOutage"},
		"an exempt expression":            {[]func(*policy.Pool){func(p *policy.Pool) { p.Exempt = broken }}, "pool.exempt[0].paths[0].value"},
		"too many partitions":             {[]func(*policy.Pool){partitions(make([]policy.Partition, policy.MaxPartitions+1)...)}, "pool.partitions has 17"},
		"a partition without a name":      {[]func(*policy.Pool){partitions(policy.Partition{})}, "pool.partitions[0].name"},
		"two partitions of one name":      {[]func(*policy.Pool){partitions(policy.Partition{Name: "a"}, policy.Partition{Name: "a"})}, "pool.partitions[1].name"},
		"a negative guarantee":            {[]func(*policy.Pool){partitions(policy.Partition{Name: "a", GuaranteedPercent: -1})}, "pool.partitions[0].guaranteedPercent"},
		"guarantees of more than all":     {[]func(*policy.Pool){partitions(policy.Partition{Name: "a", GuaranteedPercent: 60}, policy.Partition{Name: "b", GuaranteedPercent: 41})}, "pool.partitions guarantee 101"},
		"guarantees where demand decides": {[]func(*policy.Pool){partitions(policy.Partition{Name: "a", GuaranteedPercent: 1}), demand}, "set allocation to EqualSplit, or guaranteedPercent to 0"},
		"a partition's expression":        {[]func(*policy.Pool){partitions(policy.Partition{Name: "a", Match: broken})}, "pool.partitions[0].match[0].paths[0].value"},
		"a queue of nobody":               {[]func(*policy.Pool){func(p *policy.Pool) { p.Queue = &policy.Queue{MaxWait: 1} }}, "pool.queue.maxLength"},
		"a queue of a key of nobody":      {[]func(*policy.Pool){withKey, func(p *policy.Pool) { p.Key.Queue = &policy.Queue{MaxWait: 1} }}, "pool.key.queue.maxLength"},
		"a queue without patience":        {[]func(*policy.Pool){func(p *policy.Pool) { p.Queue = &policy.Queue{MaxLength: 1} }}, "pool.queue.maxWait"},
		"a key without parts":             {[]func(*policy.Pool){withKey, func(p *policy.Pool) { p.Key.Parts = nil }}, "pool.key.parts"},
		"a key of the client's address":   {[]func(*policy.Pool){keyOf(policy.KeyPart{Type: policy.ClientIPKey})}, "pool.key.parts[0].type is ClientIP"},
		"a key of the peer":               {[]func(*policy.Pool){keyOf(policy.KeyPart{Type: policy.PeerIdentityKey})}, "pool.key.parts[0].type is PeerIdentity"},
		"a key of a descriptor":           {[]func(*policy.Pool){keyOf(policy.KeyPart{Type: policy.DescriptorKey, Name: "a"})}, "pool.key.parts[0].type is Descriptor"},
		"a key of a verified claim":       {[]func(*policy.Pool){keyOf(policy.KeyPart{Type: policy.JWTClaimKey, Header: "authorization", Name: "sub", Provider: "a"})}, "pool.key.parts[0].provider"},
		"a part without its header":       {[]func(*policy.Pool){keyOf(policy.KeyPart{Type: policy.HeaderKey})}, "pool.key.parts[0].header"},
		"a key without onMissing":         {[]func(*policy.Pool){withKey, func(p *policy.Pool) { p.Key.OnMissing = "" }}, "pool.key.onMissing"},
		"a key without a limit":           {[]func(*policy.Pool){withKey, func(p *policy.Pool) { p.Key.Limit = 0 }}, "pool.key.limit"},
		"a limit per key beyond all":      {[]func(*policy.Pool){withKey, func(p *policy.Pool) { p.Key.Limit = pool.MaxLimit + 1 }}, "pool.key.limit"},
		"a status that is not one":        {[]func(*policy.Pool){func(p *policy.Pool) { p.StatusCode = 200 }}, "pool.statusCode"},
	} {
		t.Run(name, func(t *testing.T) {
			s := pooled(tc.change...)
			if err := s.Validate(); err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("got error %v, want one that names %s", err, tc.want)
			}
			if _, _, err := policy.Encode(s); err == nil {
				t.Error("it was encoded nevertheless")
			}
			if _, err := policy.Compile(s); err == nil {
				t.Error("it was compiled nevertheless")
			}
		})
	}
}

func keyOf(part policy.KeyPart) func(*policy.Pool) {
	return func(p *policy.Pool) {
		withKey(p)
		p.Key.Parts = []policy.KeyPart{part}
	}
}

// A pool with a key is divided twice: the limit of all requests, and that of every value.
func TestALimitPerKeyIsAPoolOfItsOwn(t *testing.T) {
	s := fullPool()
	s.Pool.Allocation, s.Pool.Mode = policy.EqualSplit, policy.Enforce
	withKey(s.Pool)
	got := s.Pool.PerKey()
	params := got.Params()
	if name, perKey := policy.PoolName(got.Name); name != "checkout" || !perKey || got.Name != policy.PerKeyName("checkout") {
		t.Errorf("it is called %q, want a name that differs from the pool's", got.Name)
	}
	want := s.Pool.Params()
	want.Min, want.Initial, want.Max, want.Aggregate = 20, 20, 20, pool.Median
	if params != want {
		t.Errorf("it is divided by %+v, want %+v", params, want)
	}
	if got.Algorithm.Type != policy.FixedLimit || got.Queue != nil || got.Partitions != nil || got.Key == nil {
		t.Errorf("it is %+v, want nothing inferred, queued or kept", got)
	}
	withKeyQueue(s.Pool)
	if q := s.Pool.PerKey().Queue; q == nil || *q != *s.Pool.Key.Queue {
		t.Errorf("its queue is %+v, want that of the key", q)
	}
	if s.Pool.Name != "checkout" || s.Pool.Queue == nil {
		t.Errorf("the pool itself became %+v", s.Pool)
	}
	if name, perKey := policy.PoolName("checkout"); name != "checkout" || perKey {
		t.Errorf("a pool is taken for a limit per key")
	}
	if p := got.PerKey(); p != nil {
		t.Errorf("it has a limit per key itself: %+v", p)
	}
	if p := pooled().Pool.PerKey(); p != nil {
		t.Errorf("without a key there is %+v", p)
	}
}

// Requests ask for a slot of their key before they may wait for one of the pool, and in the
// same order in every pod.
func TestKeysComeBeforeTheirPools(t *testing.T) {
	s := pooled(withKey)
	for _, name := range []string{"a", "checkout-2"} {
		other := *s.Pool
		other.Name, other.Match = name, []policy.Match{{Methods: []string{"GET"}}}
		s.Pools = append(s.Pools, other)
	}
	set, err := policy.Compile(s)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, p := range set.Pools() {
		got = append(got, p.Pool.Name)
		if _, perKey := policy.PoolName(p.Pool.Name); perKey != p.PerKey() {
			t.Errorf("%s is per key: %t", p.Pool.Name, p.PerKey())
		}
	}
	want := []string{"a/key", "a", "checkout/key", "checkout", "checkout-2/key", "checkout-2"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("order (-want +got):\n%s", diff)
	}
}

func TestValuesOfAPoolsKey(t *testing.T) {
	for name, tc := range map[string]struct {
		line      string
		onMissing policy.OnMissing
		value     string
		outcome   policy.Outcome
	}{
		"both parts":            {"GET /a x-tenant:gold", policy.Shared, "4:gold2:/a", policy.Counted},
		"a part that is shared": {"GET /a", policy.Shared, policy.MissingValue(), policy.Counted},
		"a part to go without":  {"GET /a", policy.Skip, "", policy.Skipped},
		"two that differ":       {"GET /a x-tenant:gold x-tenant:free", policy.Skip, policy.MissingValue(), policy.Counted},
		"a part to insist on":   {"GET /a", policy.Reject, "", policy.Rejected},
	} {
		set, err := policy.Compile(pooled(withKey, func(p *policy.Pool) {
			p.Key.OnMissing, p.Exempt = tc.onMissing, []policy.Match{{Methods: []string{"PUT"}}}
		}))
		if err != nil {
			t.Fatal(err)
		}
		perKey, all := set.Pools()[0], set.Pools()[1]
		r := view(request(tc.line))
		value, outcome, missing := perKey.Value(r)
		if value != tc.value || outcome != tc.outcome || outcome == policy.Rejected && missing.Type != policy.HeaderKey {
			t.Errorf("%s: %q, %d, %+v; want %q, %d", name, value, outcome, missing, tc.value, tc.outcome)
		}
		if value, outcome, _ := all.Value(r); value != "" || outcome != policy.Counted {
			t.Errorf("%s: of all requests it is %q, %d", name, value, outcome)
		}
		if other := view(request("PUT /a")); !perKey.Exempt(other) || !all.Exempt(other) {
			t.Errorf("%s: a request that is exempt of the pool is not of its key", name)
		}
	}
}

func TestRequestsOfAPool(t *testing.T) {
	path := func(value string) []policy.Match {
		return []policy.Match{{Paths: []policy.PathMatch{{Type: policy.PathPrefix, Value: value}}}}
	}
	set, err := policy.Compile(pooled(func(p *policy.Pool) {
		p.Exempt = path("/healthz")
		p.Algorithm.Ignore = path("/live/poll")
		p.Partitions = []policy.Partition{{Name: "live", Match: path("/live")}, {Name: "batch", Match: append(path("/live"), path("/batch")...)}}
	}))
	if err != nil {
		t.Fatal(err)
	}
	for line, want := range map[string]struct {
		exempt, ignored bool
		partition       int
	}{
		"GET /healthz":   {exempt: true, partition: slots.Rest},
		"GET /live":      {partition: 0}, // the first that matches
		"GET /live/poll": {ignored: true, partition: 0},
		"GET /batch/x":   {partition: 1},
		"GET /other":     {partition: slots.Rest},
	} {
		t.Run(line, func(t *testing.T) {
			p, r := set.Pools()[0], view(request(line))
			if p.Exempt(r) != want.exempt || p.Ignore(r) != want.ignored || p.Partition(r) != want.partition {
				t.Errorf("exempt %t, ignored %t, partition %d; want %+v", p.Exempt(r), p.Ignore(r), p.Partition(r), want)
			}
			if n := testing.AllocsPerRun(100, func() { p.Exempt(r); p.Ignore(r); p.Partition(r) }); n != 0 {
				t.Errorf("judging a request allocates %v times", n)
			}
		})
	}
}

func TestAPartitionWithoutMatchTakesTheRest(t *testing.T) {
	set, err := policy.Compile(fullPool())
	if err != nil {
		t.Fatal(err)
	}
	if got := set.Pools()[0].Partition(view(request("GET /x"))); got != 1 {
		t.Errorf("the request belongs to partition %d, want 1", got)
	}
	if !set.Pools()[0].Shadow() {
		t.Error("the pool refuses, want it to count only")
	}
}

func TestASetWithoutAPoolHasNone(t *testing.T) {
	set, err := policy.Compile(valid())
	if err != nil {
		t.Fatal(err)
	}
	if p := set.Pools(); p != nil {
		t.Errorf("the pool is %v, want none", p)
	}
}

// TestTheLargestPoolCanBeDivided: what validates here a coordinator takes.
func TestTheLargestPoolCanBeDivided(t *testing.T) {
	s := pooled(func(p *policy.Pool) {
		p.Generation = 1 << 52
		p.Limit = policy.LimitRange{Min: pool.MaxLimit, Initial: pool.MaxLimit, Max: pool.MaxLimit}
		p.Heartbeat.LeaseTTL = policy.MaxLeaseTTL
	})
	params := s.Pool.Params()
	if err := s.Validate(); err != nil || params.Validate() != nil {
		t.Errorf("it is refused: %v, %v", err, params.Validate())
	}
	s.Pool.Generation++
	params = s.Pool.Params()
	if s.Validate() == nil || params.Validate() == nil {
		t.Error("a generation that cannot be counted is taken")
	}
}

func TestParamsOfAPool(t *testing.T) {
	inferred, fixed := fullPool().Pool, pooled(func(p *policy.Pool) {
		p.Algorithm, p.Limit = policy.LimitAlgorithm{Type: policy.FixedLimit}, policy.LimitRange{Min: 7, Initial: 7, Max: 7}
	}).Pool
	inferred.Allocation = policy.DemandProportional
	want := pool.Params{
		Min: 1, Max: 100, Initial: 16, Aggregate: pool.Min, Allocation: pool.DemandProportional, Handoff: pool.Occupancy,
		TTL: 2 * limiter.Second, Quarantine: 2 * limiter.Second, Generation: 3,
	}
	if diff := cmp.Diff(want, inferred.Params()); diff != "" {
		t.Errorf("of a pool that infers (-want +got):\n%s", diff)
	}
	want = pool.Params{Min: 7, Max: 7, Initial: 7, TTL: 2 * limiter.Second, Quarantine: 2 * limiter.Second, Generation: 3}
	if diff := cmp.Diff(want, fixed.Params()); diff != "" {
		t.Errorf("of a pool that does not (-want +got):\n%s", diff)
	}
}

// TestAPoolIsOfTheRequestsThatItMatches however their paths are spelled, but for those that
// are exempt.
func TestAPoolIsOfTheRequestsThatItMatches(t *testing.T) {
	set, err := policy.Compile(pooled(func(p *policy.Pool) {
		p.Match = []policy.Match{{Paths: []policy.PathMatch{{Type: policy.PathPrefix, Value: "/search"}}}, {Methods: []string{"POST"}}}
		p.Exempt = []policy.Match{{Paths: []policy.PathMatch{{Type: policy.Exact, Value: "/search/healthz"}}}}
	}))
	if err != nil {
		t.Fatal(err)
	}
	for line, needs := range map[string]bool{
		"GET /search/x": true,
		"GET /other/..;/%2e%2e;/a//..;/b%252f..%252f..//c;d/..%3b/e": true, // which has too many readings to look at
		"GET /%73earch":       true,
		"POST /other":         true,
		"GET /other":          false,
		"GET /search/healthz": false,
	} {
		if got := !set.Pools()[0].Exempt(view(request(line))); got != needs {
			t.Errorf("%s needs a slot: %t, want %t", line, got, needs)
		}
	}
}

// several returns a snapshot of a pool of all requests, named checkout, and others.
func several(names ...string) policy.Snapshot {
	s := pooled()
	for _, name := range names {
		s.Pools = append(s.Pools, *pooled(func(p *policy.Pool) {
			p.Name, p.Match = name, []policy.Match{{Methods: []string{"GET"}}}
		}).Pool)
	}
	return s
}

func TestSeveralPoolsAreOrderedByName(t *testing.T) {
	set, err := policy.Compile(several("a", "z"))
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, p := range set.Pools() {
		got = append(got, p.Pool.Name)
	}
	if diff := cmp.Diff([]string{"a", "checkout", "z"}, got); diff != "" {
		t.Errorf("pools (-want +got):\n%s", diff)
	}
}

func TestSeveralPoolsThatCannotBe(t *testing.T) {
	broken := several("a")
	broken.Pools[0].Match = []policy.Match{{Paths: []policy.PathMatch{{Type: policy.RegularExpression, Value: "("}}}}
	for name, tc := range map[string]struct {
		s    policy.Snapshot
		want string
	}{
		"out of order":     {several("z", "a"), "pools[1] is out of order"},
		"two of one name":  {several("a", "a"), "pools[1] is out of order"},
		"one as pool, too": {several("checkout"), "pools[0] is pool, too"},
		"nine":             {several("a", "b", "c", "d", "e", "f", "g", "h"), "pool and pools together"},
		"a broken match":   {broken, "pools[0].match[0].paths[0].value"},
	} {
		if err := tc.s.Validate(); err == nil || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%s: got error %v, want one that names %s", name, err, tc.want)
		}
	}
	if s := several("a", "b", "c", "d", "e", "f", "g"); s.Validate() != nil {
		t.Errorf("eight pools: %v", s.Validate())
	}
}

// TestTheLastGoodVersionOfAPoolStays, also where a sidecar has several pools and refuses one.
func TestTheLastGoodVersionOfAPoolStays(t *testing.T) {
	data, _, err := policy.Encode(several("a", "z"))
	if err != nil {
		t.Fatal(err)
	}
	data = []byte(strings.Replace(string(data), `"name":"z"`, `"name":"z","weight":2`, 1))
	for name, tc := range map[string]struct {
		before policy.Snapshot
		want   []string
	}{
		"it was there":       {several("m", "z"), []string{"a", "checkout", "z"}},
		"it was not there":   {several("m"), []string{"a", "checkout"}},
		"there was no other": {policy.Snapshot{Cluster: "test", Pools: several("z").Pools}, []string{"a", "checkout", "z"}},
	} {
		s, refused, err := policy.DecodeParts(data)
		if err != nil || len(refused) != 1 || refused[0].Name != "z" || refused[0].Part != policy.PoolPart {
			t.Fatalf("refused %v, %v", refused, err)
		}
		s.Keep(&tc.before, refused)
		set, err := policy.Compile(s)
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, p := range set.Pools() {
			got = append(got, p.Pool.Name)
		}
		if diff := cmp.Diff(tc.want, got); diff != "" || refused[0].Kept != (len(tc.want) == 3) {
			t.Errorf("%s: pools (-want +got), kept %t:\n%s", name, refused[0].Kept, diff)
		}
	}
}
