package poolaudit

import (
	"cmp"
	"slices"
	"time"

	"github.com/weir-dev/weir/internal/controlplane/audit"
	"github.com/weir-dev/weir/internal/controlplane/audit/meter"
	"github.com/weir-dev/weir/pkg/limiter"
)

// Figures are what is known of one concurrency pool. Sums are over what the
// holders said last.
type Figures struct {
	Generation int64
	Verdict    audit.Verdict
	Pending    bool  // sums are of the generation before: not all holders have reported this one yet
	Limit      int64 // 0: no holder was answered by its coordinator
	Holders    int64 // that share it, as the coordinator counts them
	Granted    int64 // Σ shares
	InFlight   int64 // with what passed without a slot
	Spared     int64 // requests that passed without a slot in mode Shadow, lately in flight
	Queued     int64
	CutOff     int64 // holders without a share because the coordinator does not answer
	Measuring  int64 // holders that measured latency
	// Saturated says that requests found no slot lately, in a holder that had a share.
	Saturated   bool
	Quarantined limiter.Micros // how much longer nothing more is granted than is in use, as holders say

	Baseline, Latency   limiter.Micros // medians over the holders that have one, else 0
	AdmittedPerSecond   float64        // as in meter.Flow
	RejectedPerSecond   float64
	KeyMissingPerSecond float64 // requests that lack a part of the key

	Overshoot        *Overshoot              // nil until a holder of this generation was answered
	UnderUtilization *audit.UnderUtilization // nil until a span of this generation was measured
	Partitions       []PartitionFigures
}

// Overshoot is Δ of a pool: what can have been in flight beyond what may have
// been.
type Overshoot struct {
	Observed  int64 // lately
	Unbounded bool  // nothing bounds what is in flight now
	Worst     int64 // since the generation began
	WorstTime time.Time
}

// PartitionFigures are what is known of one partition of a pool.
type PartitionFigures struct {
	Name              string
	Guaranteed        int64 // slots, over all holders
	InFlight          int64
	RejectedPerSecond float64
}

// Figures returns what is known of the pool.
func (p *Pool) Figures(now time.Time) Figures {
	flow := p.meter.Flow(now)
	f := Figures{
		Generation:          p.config.Generation,
		Verdict:             p.verdict(now),
		Pending:             p.pending(now),
		Limit:               p.limit,
		Holders:             p.holders,
		Spared:              p.spared,
		Saturated:           p.saturated(now),
		AdmittedPerSecond:   flow.AdmittedPerSecond,
		RejectedPerSecond:   flow.RejectedPerSecond,
		KeyMissingPerSecond: p.keyMissing.Flow(now).RejectedPerSecond,
		UnderUtilization:    p.unused.figure(),
	}
	if p.measured {
		f.Overshoot = p.overshoot(now)
	}
	var baselines, latencies []limiter.Micros
	parts := make(map[string]*PartitionFigures)
	for _, m := range p.members {
		if m.reported.IsZero() {
			continue
		}
		r := &m.report
		f.Granted, f.InFlight, f.Queued = f.Granted+r.Share, f.InFlight+r.InFlight, f.Queued+r.Queued
		if r.CutOff() {
			f.CutOff++
		}
		if r.Latency > 0 {
			f.Measuring++
		}
		f.Quarantined = max(f.Quarantined, r.Quarantined)
		baselines, latencies = positive(baselines, r.Baseline), positive(latencies, r.Latency)
		for _, part := range r.Partitions {
			sum := parts[part.Name]
			if sum == nil {
				sum = &PartitionFigures{Name: part.Name}
				parts[part.Name] = sum
			}
			sum.Guaranteed, sum.InFlight = sum.Guaranteed+part.Guaranteed, sum.InFlight+part.InFlight
		}
	}
	f.Baseline, f.Latency = median(baselines), median(latencies)
	for name, sum := range parts {
		if m := p.partitions[name]; m != nil {
			sum.RejectedPerSecond = m.Flow(now).RejectedPerSecond
		}
		f.Partitions = append(f.Partitions, *sum)
	}
	slices.SortFunc(f.Partitions, func(a, b PartitionFigures) int { return cmp.Compare(a.Name, b.Name) })
	return f
}

func (p *Pool) saturated(now time.Time) bool {
	return !p.full.IsZero() && now.Sub(p.full) < meter.ShortestSpan
}

func (p *Pool) verdict(now time.Time) audit.Verdict {
	switch {
	case p.exceeded:
		return audit.Exceeded
	case p.locals > 0:
		return audit.FailOpen
	case p.missing(now):
		return audit.ReportsMissing
	case p.config.Bounded && p.spared > 0:
		return audit.Starting
	case p.traffic && p.measured && !p.pending(now):
		return audit.Measured
	case p.traffic:
		return audit.Starting
	}
	return audit.NoTraffic
}

// pending reports whether a member has yet to report what its coordinator answers under
// this generation. A member that does not report in time is not waited for.
func (p *Pool) pending(now time.Time) bool {
	if p.changed.IsZero() || now.Sub(p.changed) > silentAfter*p.interval {
		return false
	}
	for _, m := range p.members {
		old := m.report.Generation != p.config.Generation || m.report.Limit == 0 && m.report.CoordinatorError == ""
		if !m.reported.IsZero() && old {
			return true
		}
	}
	return false
}

// missing reports whether a member owes its report for too long.
func (p *Pool) missing(now time.Time) bool {
	for _, m := range p.members {
		last := m.joined
		if m.reported.After(last) {
			last = m.reported
		}
		if now.Sub(last) > silentAfter*p.interval {
			return true
		}
	}
	return false
}

func (p *Pool) overshoot(now time.Time) *Overshoot {
	out := p.worst
	out.Observed, out.Unbounded = p.lately.most(now), p.unbounded(now)
	return &out
}

func positive(to []limiter.Micros, d limiter.Micros) []limiter.Micros {
	if d > 0 {
		return append(to, d)
	}
	return to
}

// median returns the lower one, 0 of none.
func median(of []limiter.Micros) limiter.Micros {
	if len(of) == 0 {
		return 0
	}
	slices.Sort(of)
	return of[(len(of)-1)/2]
}
