package translate

import (
	"slices"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/weir-dev/weir/pkg/limiter"
	"github.com/weir-dev/weir/pkg/policy"
)

const (
	// shortInterval is that of beats which a coordinator hears often.
	shortInterval = 100 * limiter.Millisecond
	// longLease outlasts the election of another leading controller.
	longLease = 30 * limiter.Second
	// slowBeat is what the round trip of a beat takes when things go slow, not wrong.
	slowBeat = 50 * limiter.Millisecond
)

// poolDoubts returns what works and may yet not be what was meant.
func poolDoubts(translated policy.Pool) []string {
	d := poolDoubt{path: field.NewPath("spec"), pool: &translated}
	return slices.Concat(
		d.stuck(),
		d.probe(),
		d.heartbeat(),
		d.fence(),
		d.outage(),
		d.partitions(),
		d.key(),
		d.queue(),
		halfExempt(d.path.Child("exempt"), translated.Exempt),
		halfExempt(d.path.Child("algorithm", "ignore"), translated.Algorithm.Ignore),
	)
}

type poolDoubt struct {
	path *field.Path
	pool *policy.Pool
}

// stuck warns of a limit that is inferred and cannot move, or the other way round.
func (d poolDoubt) stuck() []string {
	fixed := d.pool.Algorithm.Type == policy.FixedLimit
	switch {
	case !fixed && d.pool.Limit.Min == d.pool.Limit.Max:
		return []string{warn(d.path.Child("limit", "min"), "it is max, so the limit never moves: lower it, or set algorithm.type to Fixed and remove it")}
	case fixed && d.pool.Aggregate != policy.Median:
		return []string{warn(d.path.Child("aggregate"), "with algorithm Fixed nothing is inferred, so this has no effect: remove it, or set algorithm.type to Gradient2")}
	default:
		return nil
	}
}

func (d poolDoubt) probe() []string {
	b, most := d.pool.Algorithm.Baseline, d.pool.Limit.Max
	if b == nil || b.ProbeLimit < most || most == 1 {
		return nil
	}
	return []string{warn(d.path.Child("algorithm", "baseline", "probeLimit"),
		"it is not below limit.max (%d), so the pods may measure the load that they make: lower it, for example to %d", most, max(1, most/10))}
}

func (d poolDoubt) heartbeat() []string {
	h, path := d.pool.Heartbeat, d.path.Child("heartbeat")
	var warnings []string
	if h.Interval < shortInterval {
		warnings = append(warnings, warn(path.Child("interval"),
			"every pod asks the coordinator %d times a second: raise it to 100ms or more, and leave eager Enabled to follow load sooner", limiter.Second/h.Interval))
	}
	if h.LeaseTTL > longLease {
		warnings = append(warnings, warn(path.Child("leaseTTL"),
			"the share of a pod that dies is missing for %s, and it cannot be lowered later: set it to 30s or less", text(h.LeaseTTL)))
	}
	return warnings
}

func (d poolDoubt) fence() []string {
	path := d.path.Child("selfFence")
	var warnings []string
	if slack := d.pool.Heartbeat.LeaseTTL - d.pool.Heartbeat.Interval - d.pool.SelfFence.Margin; slack < slowBeat {
		warnings = append(warnings, warn(path.Child("margin"),
			"only %s are left for a beat's round trip before the pod stops, so a slow one stops it: raise heartbeat.leaseTTL, or shorten margin or heartbeat.interval", text(slack)))
	}
	if d.pool.SelfFence.OnFenced == policy.Abort && d.pool.OnCoordinatorOutage == policy.LocalOnly {
		warnings = append(warnings, warn(path.Child("onFenced"),
			"with onCoordinatorOutage LocalOnly a pod whose coordinator is away is not fenced, so Abort ends no request then: set it to Drain, or the action to FailClosed"))
	}
	return warnings
}

func (d poolDoubt) outage() []string {
	if d.pool.OnCoordinatorOutage != policy.LocalOnly || d.pool.Algorithm.Type != policy.FixedLimit {
		return nil
	}
	return []string{warn(d.path.Child("onCoordinatorOutage", "action"),
		"with algorithm Fixed nothing is inferred, so each pod that is cut off admits the whole limit (%d) by itself: set it to FailClosed, or algorithm.type to Gradient2", d.pool.Limit.Max)}
}

// partitions warns of guarantees that never amount to a slot.
func (d poolDoubt) partitions() []string {
	var warnings []string
	for i, p := range d.pool.Partitions {
		path := d.path.Child("partitions").Index(i)
		if p.GuaranteedPercent > 0 && d.pool.Limit.Max*int64(p.GuaranteedPercent) < 100 {
			warnings = append(warnings, warn(path.Child("guaranteedPercent"),
				"%d percent of at most %d slots is less than one, so nothing is kept: raise it, or limit.max", p.GuaranteedPercent, d.pool.Limit.Max))
		}
		warnings = append(warnings, encodedPaths(path.Child("match"), p.Match)...)
	}
	return warnings
}

// key warns of a limit per value that the pool's own never lets a value reach.
func (d poolDoubt) key() []string {
	k, most := d.pool.Key, d.pool.Limit.Max
	if k == nil || k.Limit < most {
		return nil
	}
	return []string{warn(d.path.Child("key", "limit"),
		"it is not below limit.max (%d), so it never refuses a request: lower it, for example to %d", most, max(1, most/4))}
}

func (d poolDoubt) queue() []string {
	if d.pool.Mode != policy.Shadow {
		return nil
	}
	var warnings []string
	idle := func(q *policy.Queue, path *field.Path) {
		if q != nil {
			warnings = append(warnings, warn(path, "in mode Shadow a request that finds no slot passes at once, so nobody waits: set mode to Enforce, or remove queue"))
		}
	}
	idle(d.pool.Queue, d.path.Child("queue"))
	if d.pool.Key != nil {
		idle(d.pool.Key.Queue, d.path.Child("key", "queue"))
	}
	return warnings
}
