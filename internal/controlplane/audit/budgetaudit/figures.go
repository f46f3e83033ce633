package budgetaudit

import (
	"time"

	"github.com/weir-dev/weir/internal/controlplane/audit"
	"github.com/weir-dev/weir/pkg/federation/ledger"
)

// Figures are what is known of one budget that several clusters share. They
// follow from what all members reported, so they are the same in every cluster.
type Figures struct {
	Generation int64
	Verdict    audit.Verdict // never FailOpen
	// Window is the newest window that is over and that all members that took part in it
	// accounted for; nil for none yet.
	Window *ledger.Closed
	// Silent are the members whose reports of the newest window that is due are missing.
	Silent []string

	Overshoot        *Overshoot              // nil until something is known of a window of this generation
	UnderUtilization *audit.UnderUtilization // nil until a window of this generation was measured

	// Leases that this cluster's controller asked of the coordinator, averaged over the last
	// ten to twenty seconds.
	LeasesPerSecond float64
	UnitsPerLease   float64 // 0 when nothing was granted
}

// Overshoot is Δ of a budget in units: what a window admitted beyond its limit.
type Overshoot struct {
	WindowEnd time.Time // of the window measured last, on the coordinator's clock; zero: only Worst is known
	Observed  int64     // in that window
	// Bound is what a window may admit beyond its limit: nothing, unless the limit was
	// lowered after more had been granted of it.
	Bound      int64
	Worst      int64 // since the generation began, at least
	WorstEnd   time.Time
	WorstBound int64 // of the window with Worst
}

// Figures returns what is known at the instant now.
func (b *Budget) Figures(now time.Time) Figures {
	sum, took := b.meter.Recent(now)
	f := Figures{Generation: b.generation, Verdict: b.verdict(), Window: b.last, Silent: b.silent}
	if took > 0 {
		f.LeasesPerSecond = float64(sum.RoundTrips) / took
	}
	if sum.RoundTrips > 0 {
		f.UnitsPerLease = float64(sum.Admitted) / float64(sum.RoundTrips)
	}
	if b.last != nil || b.over.Worst > 0 {
		f.Overshoot = new(b.over)
	}
	if b.last != nil {
		f.UnderUtilization = new(b.unused)
	}
	return f
}

func (b *Budget) verdict() audit.Verdict {
	switch {
	case b.exceeded || b.over.Observed > b.over.Bound:
		return audit.Exceeded
	case len(b.silent) > 0:
		return audit.ReportsMissing
	case b.traffic && b.last != nil:
		return audit.Measured
	case b.traffic:
		return audit.Starting
	}
	return audit.NoTraffic
}
