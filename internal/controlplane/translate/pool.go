package translate

import (
	"fmt"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/weir-dev/weir/api/v1alpha1"
	"github.com/weir-dev/weir/pkg/limiter"
	"github.com/weir-dev/weir/pkg/policy"
)

// Pool returns what a sidecar enforces for p. The object is one that the API server
// defaulted. The error names every field that is wrong, with its cure.
func Pool(p *v1alpha1.ConcurrencyPool) (policy.Pool, error) {
	translated, errs := translatePool(p)
	return translated, errs.ToAggregate()
}

// translatePool returns the translation of p and all that is wrong with it. Where it
// returns errors the translation is of no use.
func translatePool(p *v1alpha1.ConcurrencyPool) (policy.Pool, field.ErrorList) {
	spec := field.NewPath("spec")
	t := translator{errs: validateSelector(&p.Spec.PodSelector, spec.Child("podSelector"))}
	heartbeat := t.heartbeat(spec.Child("heartbeat"), p.Spec.Heartbeat)
	translated := policy.Pool{
		Namespace:           p.Namespace,
		Name:                p.Name,
		Generation:          Generation(p),
		Mode:                policy.Mode(p.Spec.Mode),
		Coordinator:         store(p.Namespace, p.Spec.Coordinator),
		Limit:               limitRange(&p.Spec),
		Algorithm:           t.algorithm(spec.Child("algorithm"), &p.Spec.Algorithm),
		Aggregate:           policy.Aggregate(p.Spec.Aggregate),
		Allocation:          policy.Allocation(p.Spec.Allocation),
		Handoff:             policy.Handoff(p.Spec.Handoff),
		Heartbeat:           heartbeat,
		SelfFence:           t.selfFence(spec.Child("selfFence"), p.Spec.SelfFence, heartbeat),
		OnCoordinatorOutage: policy.OutageAction(p.Spec.OnCoordinatorOutage.Action),
		Match:               t.matches(spec.Child("match"), p.Spec.Match),
		Key:                 t.poolKey(spec.Child("key"), p.Spec.Key),
		Exempt:              t.matches(spec.Child("exempt"), p.Spec.Exempt),
		Partitions:          t.partitions(spec.Child("partitions"), p.Spec.Partitions),
		Queue:               t.queue(spec.Child("queue"), p.Spec.Queue),
		StatusCode:          int(p.Spec.Response.StatusCode),
	}
	if len(t.errs) == 0 {
		t.checkLease(spec, p.Spec.SelfFence.Margin, &translated)
	}
	if len(t.errs) == 0 {
		t.errs = accepted(spec, policy.Snapshot{Pool: &translated})
	}
	return translated, t.errs
}

func limitRange(s *v1alpha1.ConcurrencyPoolSpec) policy.LimitRange {
	most := s.Limit.Max
	if s.Algorithm.Type == v1alpha1.FixedAlgorithm {
		return policy.LimitRange{Min: most, Initial: most, Max: most}
	}
	least := or(s.Limit.Min, v1alpha1.DefaultMinConcurrency)
	initial := or(s.Limit.Initial, min(max(v1alpha1.DefaultInitialConcurrency, least), most))
	return policy.LimitRange{Min: least, Initial: initial, Max: most}
}

func (t *translator) algorithm(path *field.Path, a *v1alpha1.PoolAlgorithm) policy.LimitAlgorithm {
	out := policy.LimitAlgorithm{Type: policy.LimitAlgorithmType(a.Type)}
	if a.Type == v1alpha1.FixedAlgorithm {
		return out
	}
	out.TolerancePercent = int(or(a.TolerancePercent, v1alpha1.DefaultTolerancePercent))
	if a.Type == v1alpha1.AIMDAlgorithm {
		out.BackoffPercent = int(or(a.BackoffPercent, v1alpha1.DefaultBackoffPercent))
	} else {
		out.SmoothingPercent = int(or(a.SmoothingPercent, v1alpha1.DefaultSmoothingPercent))
	}
	out.Baseline = t.baseline(path.Child("baseline"), or(a.Baseline, v1alpha1.Baseline{Type: v1alpha1.MeasuredBaseline}))
	out.Ignore = t.matches(path.Child("ignore"), a.Ignore)
	return out
}

func (t *translator) baseline(path *field.Path, b v1alpha1.Baseline) *policy.Baseline {
	out := &policy.Baseline{Type: policy.BaselineType(b.Type)}
	if b.Type == v1alpha1.RollingBaseline {
		out.Samples = int(or(b.Samples, v1alpha1.DefaultBaselineSamples))
		return out
	}
	if b.Interval == "" {
		b.Interval = v1alpha1.DefaultBaselineInterval
	}
	out.Interval = t.micros(path.Child("interval"), string(b.Interval))
	out.ProbeLimit = or(b.ProbeLimit, 0)
	out.ProbeSamples = int(or(b.ProbeSamples, v1alpha1.DefaultProbeSamples))
	return out
}

// eagerParts is in how many parts an interval is divided by eager beats, where it is
// not said how soon one may follow another.
const eagerParts = 10

func (t *translator) heartbeat(path *field.Path, h v1alpha1.Heartbeat) policy.Heartbeat {
	out := policy.Heartbeat{
		Interval: t.micros(path.Child("interval"), string(h.Interval)),
		LeaseTTL: t.micros(path.Child("leaseTTL"), string(h.LeaseTTL)),
		Eager:    h.Eager == v1alpha1.EagerEnabled,
	}
	out.MinInterval = out.Interval / eagerParts
	if h.MinInterval != "" {
		out.MinInterval = t.micros(path.Child("minInterval"), string(h.MinInterval))
	}
	return out
}

func (t *translator) selfFence(path *field.Path, f v1alpha1.SelfFence, h policy.Heartbeat) policy.SelfFence {
	out := policy.SelfFence{Margin: (h.LeaseTTL - h.Interval) / 2, OnFenced: policy.FenceAction(f.OnFenced)}
	if f.Margin != "" {
		out.Margin = t.micros(path.Child("margin"), string(f.Margin))
	}
	return out
}

// checkLease refuses shares that expire before the next beat: a pod has of leaseTTL
// what is left by the margin and by how far two clocks may run apart meanwhile.
func (t *translator) checkLease(spec *field.Path, margin v1alpha1.Span, p *policy.Pool) {
	h := p.Heartbeat
	drift := h.LeaseTTL/5000 + limiter.Millisecond // as the holder's engine counts it
	room := h.LeaseTTL - h.Interval - drift        // for the margin and a round trip
	switch {
	case p.SelfFence.Margin < room || h.LeaseTTL <= h.Interval:
	case margin != "" && room > limiter.Millisecond:
		t.invalid(spec.Child("selfFence", "margin"), string(margin), fmt.Sprintf(
			"leaves no time for a beat to be answered before the pod stops, since %s of a share are lost to clocks that run apart: shorten it to less than %s, or raise heartbeat.leaseTTL, which cannot be undone", text(drift), text(room)))
	default:
		t.invalid(spec.Child("heartbeat", "leaseTTL"), text(h.LeaseTTL), fmt.Sprintf(
			"leaves no time for a beat to be answered before the pod stops, since %s of a share are lost to clocks that run apart: shorten interval, or raise it to twice interval, which cannot be undone", text(drift)))
	}
}

func (t *translator) partitions(path *field.Path, partitions []v1alpha1.Partition) []policy.Partition {
	var out []policy.Partition
	for i, p := range partitions {
		out = append(out, policy.Partition{
			Name:              p.Name,
			GuaranteedPercent: int(p.GuaranteedPercent),
			Match:             t.matches(path.Index(i).Child("match"), p.Match),
		})
	}
	return out
}

func (t *translator) queue(path *field.Path, q *v1alpha1.Queue) *policy.Queue {
	if q == nil {
		return nil
	}
	return &policy.Queue{MaxLength: int(q.MaxLength), MaxWait: t.micros(path.Child("maxWait"), string(q.MaxWait))}
}
