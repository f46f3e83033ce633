package policy

import (
	"net/http"
	"slices"

	"github.com/weir-dev/weir/pkg/concurrency/pool"
	"github.com/weir-dev/weir/pkg/concurrency/slots"
	"github.com/weir-dev/weir/pkg/limiter"
)

// Bounds of a pool.
const (
	MaxPools           = 8 // of one sidecar
	MaxPartitions      = slots.MaxPartitions
	MaxQueue           = 10_000
	MaxBaselineSamples = 10_000
	MaxProbeSamples    = 1_000
	MaxLeaseTTL        = 60 * limiter.Second
	MaxQueueWait       = 3600 * limiter.Second
	minBaseline        = 10             // µs of interval: a tenth of it is for measuring
	maxGeneration      = int64(1) << 52 // that coordinators take
)

func (p *Pool) validate(errs *problems, path string) {
	errs.name(path+".namespace", p.Namespace, labelName)
	errs.name(path+".name", p.Name, objectName)
	errs.within(path+".generation", p.Generation, 0, maxGeneration)
	oneOf(errs, path+".mode", p.Mode, Enforce, Shadow)
	p.Coordinator.validate(errs, path+".coordinator")
	p.validateLimit(errs, path+".limit")
	p.Algorithm.validate(errs, path+".algorithm")
	oneOf(errs, path+".aggregate", p.Aggregate, Median, Minimum)
	oneOf(errs, path+".allocation", p.Allocation, EqualSplit, DemandProportional)
	oneOf(errs, path+".handoff", p.Handoff, Acknowledged, Occupancy)
	p.Heartbeat.validate(errs, path+".heartbeat")
	p.SelfFence.validate(errs, path+".selfFence", p.Heartbeat)
	oneOf(errs, path+".onCoordinatorOutage", p.OnCoordinatorOutage, FailClosed, LocalOnly)
	errs.requestMatches(path+".match", p.Match)
	if p.Key != nil {
		p.Key.validate(errs, path+".key")
	}
	errs.requestMatches(path+".exempt", p.Exempt)
	p.validatePartitions(errs, path+".partitions")
	p.Queue.validate(errs, path+".queue")
	if p.StatusCode != http.StatusTooManyRequests && p.StatusCode != http.StatusServiceUnavailable {
		errs.add(path+".statusCode", "is %d: use 503 or 429", p.StatusCode)
	}
}

func (k *PoolKey) validate(errs *problems, path string) {
	errs.count(path+".parts", len(k.Parts), 1, MaxParts)
	for i, part := range k.Parts {
		at := path + entry(".parts", i)
		part.validate(errs, at)
		switch {
		case part.Type == ClientIPKey || part.Type == PeerIdentityKey:
			errs.add(at+".type", "is %s, and a pool knows no proxy that says who the client is: take the key from what the proxy sends, such as a header", part.Type)
		case part.Type == DescriptorKey:
			errs.add(at+".type", "is %s, of calls of the rate limit service, which need no slot: take the key from the request", part.Type)
		case part.Provider != "":
			errs.add(at+".provider", "is %q, and a pool verifies no token: remove it", part.Provider)
		}
	}
	oneOf(errs, path+".onMissing", k.OnMissing, Shared, Skip, Reject)
	errs.within(path+".limit", k.Limit, 1, pool.MaxLimit)
	k.Queue.validate(errs, path+".queue")
}

func (q *Queue) validate(errs *problems, path string) {
	if q != nil {
		errs.within(path+".maxLength", int64(q.MaxLength), 1, MaxQueue)
		errs.within(path+".maxWait", int64(q.MaxWait), 1, int64(MaxQueueWait))
	}
}

func (p *Pool) validateLimit(errs *problems, path string) {
	errs.within(path+".max", p.Limit.Max, 1, pool.MaxLimit)
	errs.within(path+".min", p.Limit.Min, 1, max(1, p.Limit.Max))
	errs.within(path+".initial", p.Limit.Initial, max(1, p.Limit.Min), max(1, p.Limit.Max))
	if p.Algorithm.Type == FixedLimit && p.Limit != (LimitRange{p.Limit.Max, p.Limit.Max, p.Limit.Max}) {
		errs.add(path, "is a range, but algorithm Fixed never moves it: set min and initial to max")
	}
}

func (a *LimitAlgorithm) validate(errs *problems, path string) {
	oneOf(errs, path+".type", a.Type, Gradient2, AIMD, FixedLimit)
	if a.Type == FixedLimit {
		a.validateFixed(errs, path)
		return
	}
	errs.within(path+".tolerancePercent", int64(a.TolerancePercent), 100, 1000)
	switch a.Type {
	case AIMD:
		errs.within(path+".backoffPercent", int64(a.BackoffPercent), 50, 99)
		errs.within(path+".smoothingPercent", int64(a.SmoothingPercent), 0, 0)
	default:
		errs.within(path+".smoothingPercent", int64(a.SmoothingPercent), 1, 100)
		errs.within(path+".backoffPercent", int64(a.BackoffPercent), 0, 0)
	}
	if a.Baseline == nil {
		errs.add(path+".baseline", "is missing: an algorithm that follows latency needs one")
	} else {
		a.Baseline.validate(errs, path+".baseline")
	}
	errs.requestMatches(path+".ignore", a.Ignore)
}

func (a *LimitAlgorithm) validateFixed(errs *problems, path string) {
	knobs := a.SmoothingPercent | a.TolerancePercent | a.BackoffPercent
	if knobs != 0 || a.Baseline != nil || a.Ignore != nil {
		errs.add(path, "has settings of latency: algorithm Fixed measures none")
	}
}

func (b *Baseline) validate(errs *problems, path string) {
	oneOf(errs, path+".type", b.Type, MeasuredBaseline, RollingBaseline)
	if b.Type == RollingBaseline {
		errs.within(path+".samples", int64(b.Samples), 1, MaxBaselineSamples)
		errs.within(path+".interval", int64(b.Interval), 0, 0)
		errs.within(path+".probeLimit", b.ProbeLimit, 0, 0)
		errs.within(path+".probeSamples", int64(b.ProbeSamples), 0, 0)
		return
	}
	errs.within(path+".samples", int64(b.Samples), 0, 0)
	errs.within(path+".interval", int64(b.Interval), minBaseline, int64(limiter.MaxWindow))
	errs.within(path+".probeLimit", b.ProbeLimit, 0, pool.MaxLimit)
	errs.within(path+".probeSamples", int64(b.ProbeSamples), 1, MaxProbeSamples)
}

func (h Heartbeat) validate(errs *problems, path string) {
	errs.within(path+".leaseTTL", int64(h.LeaseTTL), 2, int64(MaxLeaseTTL))
	errs.within(path+".interval", int64(h.Interval), 1, max(1, int64(h.LeaseTTL)-1))
	errs.within(path+".minInterval", int64(h.MinInterval), 1, max(1, int64(h.Interval)))
}

func (f SelfFence) validate(errs *problems, path string, h Heartbeat) {
	errs.within(path+".margin", int64(f.Margin), 0, max(0, int64(h.LeaseTTL-h.Interval)-1))
	oneOf(errs, path+".onFenced", f.OnFenced, Drain, Abort)
}

func (p *Pool) validatePartitions(errs *problems, path string) {
	errs.count(path, len(p.Partitions), 0, MaxPartitions)
	guaranteed := 0
	for i := range p.Partitions {
		partition, at := &p.Partitions[i], entry(path, i)
		errs.name(at+".name", partition.Name, labelName)
		errs.within(at+".guaranteedPercent", int64(partition.GuaranteedPercent), 0, 100)
		errs.requestMatches(at+".match", partition.Match)
		guaranteed += partition.GuaranteedPercent
		if slices.ContainsFunc(p.Partitions[:i], func(q Partition) bool { return q.Name == partition.Name }) {
			errs.add(at+".name", "is %q a second time: rename one of them", partition.Name)
		}
	}
	if guaranteed > 0 && p.Allocation == DemandProportional {
		errs.add(path, "guarantee %d percent, which may stay unused, but allocation DemandProportional gives more only to a holder that uses all it has: set allocation to EqualSplit, or guaranteedPercent to 0", guaranteed)
	}
	if guaranteed > 100 {
		errs.add(path, "guarantee %d percent together, more than 100", guaranteed)
	}
}
