package pools

import (
	"time"

	"github.com/weir-dev/weir/pkg/concurrency"
	"github.com/weir-dev/weir/pkg/concurrency/adaptive"
	"github.com/weir-dev/weir/pkg/concurrency/pool"
	"github.com/weir-dev/weir/pkg/concurrency/slots"
	"github.com/weir-dev/weir/pkg/limiter"
	"github.com/weir-dev/weir/pkg/policy"
)

// guardConfig returns what the guard of a holder has to keep. In shadow no request
// waits and none is ended: all pass anyway.
func guardConfig(cluster, holder string, p *policy.Pool, shadow bool) concurrency.Config {
	c := concurrency.Config{
		Key:    pool.Key{Cluster: cluster, Namespace: p.Namespace, Name: p.Name},
		Holder: holder,
		Params: p.Params(),
		Law:    lawConfig(p),
		Slots:  slotsConfig(p),
		Heartbeat: concurrency.Heartbeat{
			Interval:    duration(p.Heartbeat.Interval),
			MinInterval: duration(p.Heartbeat.MinInterval),
			Eager:       p.Heartbeat.Eager,
		},
		Margin:   duration(p.SelfFence.Margin),
		OnFenced: fenceActions[p.SelfFence.OnFenced],
		OnOutage: outageActions[p.OnCoordinatorOutage],
	}
	_, c.PerKey = policy.PoolName(p.Name)
	if shadow {
		c.Slots.Queue, c.OnFenced = slots.Queue{}, concurrency.Drain
	}
	return c
}

func lawConfig(p *policy.Pool) adaptive.Config {
	a := &p.Algorithm
	c := adaptive.Config{
		Algorithm: algorithms[a.Type],
		Min:       p.Limit.Min, Max: p.Limit.Max, Initial: p.Limit.Initial,
		Smoothing: fraction(a.SmoothingPercent),
		Tolerance: fraction(a.TolerancePercent),
		Backoff:   fraction(a.BackoffPercent),
	}
	if b := a.Baseline; b != nil {
		c.Baseline = adaptive.Baseline{
			Type: baselines[b.Type], Samples: b.Samples,
			Interval: b.Interval, ProbeLimit: b.ProbeLimit, ProbeSamples: b.ProbeSamples,
		}
	}
	return c
}

func slotsConfig(p *policy.Pool) slots.Config {
	var c slots.Config
	for i := range p.Partitions {
		c.Partitions = append(c.Partitions, slots.Partition{
			Name: p.Partitions[i].Name, GuaranteedPercent: p.Partitions[i].GuaranteedPercent,
		})
	}
	if q := p.Queue; q != nil {
		c.Queue = slots.Queue{MaxLength: q.MaxLength, MaxWait: q.MaxWait}
	}
	return c
}

var baselines = map[policy.BaselineType]adaptive.BaselineType{
	policy.MeasuredBaseline: adaptive.Measured,
	policy.RollingBaseline:  adaptive.Rolling,
}

var algorithms = map[policy.LimitAlgorithmType]adaptive.Algorithm{
	policy.Gradient2:  adaptive.Gradient2,
	policy.AIMD:       adaptive.AIMD,
	policy.FixedLimit: adaptive.Fixed,
}

var fenceActions = map[policy.FenceAction]concurrency.FenceAction{
	policy.Drain: concurrency.Drain,
	policy.Abort: concurrency.Abort,
}

var outageActions = map[policy.OutageAction]concurrency.OutageAction{
	policy.FailClosed: concurrency.FailClosed,
	policy.LocalOnly:  concurrency.LocalOnly,
}

func fraction(percent int) float64 { return float64(percent) / 100 }

func duration(d limiter.Micros) time.Duration { return time.Duration(d) * time.Microsecond }
