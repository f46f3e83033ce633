package poolaudit

import (
	"time"

	"github.com/weir-dev/weir/internal/controlplane/audit"
	"github.com/weir-dev/weir/internal/controlplane/audit/meter"
	"github.com/weir-dev/weir/pkg/limiter"
)

// A Report is what one holder reports of a concurrency pool, whichever coordinator
// divides it. Counts of requests are since the holder's process started.
type Report struct {
	Generation int64 // of the pool the holder enforces

	Share    int64 // of the limit; 0 while it is fenced
	Ceiling  int64 // that it enforces
	Inferred int64 // what it infers that the backend bears
	InFlight int64
	Peak     int64 // since its last report
	Spared   int64 // of Peak, at most, that were let through without a slot in mode Shadow
	Queued   int64
	Fenced   bool // its share expired before its coordinator answered

	Baseline limiter.Micros // latency without load, 0 when nothing was measured
	Latency  limiter.Micros // of the last request measured, 0 when none was

	Admitted, Refused int64
	KeyMissing        int64 // requests refused without a part of the key; Refused has none of them
	Fences, Aborted   int64

	// CoordinatorError is why its coordinator does not answer, empty when it does.
	CoordinatorError string
	// As its coordinator answered last under this generation; Limit is 0 before it did.
	Limit, Holders int64
	// Occupied is the most that the fleet can have had in flight, and Bound what it may
	// have been: both are the worst of all answers since the last report.
	Occupied, Bound int64
	Quarantined     limiter.Micros // how much longer nothing more is granted than is in use

	Partitions []PartitionReport
}

// A PartitionReport is what one holder reports of a partition of its pool.
type PartitionReport struct {
	Name       string
	Guaranteed int64 // slots
	InFlight   int64
	Refused    int64 // since its process started
}

// Local reports whether the holder admits by what it infers alone.
func (r *Report) Local() bool { return r.Ceiling > r.Share }

// CutOff reports whether the holder refuses every request, because its coordinator does
// not answer: its share expired, or it never had one.
func (r *Report) CutOff() bool {
	return r.Fenced || r.CoordinatorError != "" && r.Share == 0 && !r.Local()
}

// answered reports whether what r says of the coordinator is from now.
func (r *Report) answered() bool { return r.Limit > 0 && !r.Fenced && r.CoordinatorError == "" }

// Report enters what a member reports, and returns how many times it was fenced since it
// reported last. Reports of others are ignored.
func (p *Pool) Report(h audit.Holder, r Report, now time.Time) (fences int64) {
	m := p.members[h]
	if m == nil {
		return 0
	}
	if !m.reported.IsZero() {
		fences = max(0, r.Fences-m.report.Fences)
		p.count(m, &r, now)
	}
	p.countLocal(m, -1)
	m.report, m.reported = r, now
	p.countLocal(m, +1)
	if p.locals > 0 {
		p.local = now
	}
	p.traffic = p.traffic || r.Admitted > 0 || r.Refused > 0
	if r.answered() && r.Generation == p.config.Generation {
		p.limit, p.holders = r.Limit, r.Holders
	}
	if r.Generation == p.config.Generation && r.Bound > 0 {
		p.enter(r.Occupied-r.Bound, now)
	}
	return fences
}

// count enters what a member decided since its last report.
func (p *Pool) count(m *member, r *Report, now time.Time) {
	decided := meter.Counts{Admitted: r.Admitted, Refused: r.Refused}.Since(meter.Counts{Admitted: m.report.Admitted, Refused: m.report.Refused})
	p.meter.Add(decided, now)
	p.keyMissing.Add(meter.Counts{Refused: r.KeyMissing}.Since(meter.Counts{Refused: m.report.KeyMissing}), now)
	if !r.CutOff() && !m.report.CutOff() {
		m.refused += decided.Refused
		if decided.Refused > 0 || r.Queued > 0 {
			p.full = now
		}
	}
	for _, part := range r.Partitions {
		of := p.partitions[part.Name]
		if of == nil {
			of = &meter.Meter{}
			p.partitions[part.Name] = of
		}
		of.Add(meter.Counts{Refused: part.Refused}.Since(meter.Counts{Refused: refusedBefore(m.report.Partitions, part)}), now)
	}
}

// refusedBefore returns what the partition had refused; of one that is new to the
// holder as much as it has now.
func refusedBefore(before []PartitionReport, part PartitionReport) int64 {
	for _, b := range before {
		if b.Name == part.Name {
			return b.Refused
		}
	}
	return part.Refused
}

// countLocal enters or takes off whether m admits by itself.
func (p *Pool) countLocal(m *member, sign int) {
	if !m.reported.IsZero() && m.report.Local() {
		p.locals += sign
	}
}

// Last returns what the holder reported last, and false when it has not reported.
func (p *Pool) Last(h audit.Holder) (Report, bool) {
	m := p.members[h]
	if m == nil || m.reported.IsZero() {
		return Report{}, false
	}
	return m.report, true
}
