package audit

import (
	"time"

	"github.com/weir-dev/weir/internal/controlplane/audit/meter"
)

// A Verdict says what the counts of a limit allow to be said about its bound.
type Verdict int

// The verdicts, from the one that outweighs all others to the one that yields.
const (
	Exceeded       Verdict = iota // a window of this generation admitted more than its bound
	FailOpen                      // in the last window holders admitted without a share that bounds them
	MemoryLost                    // in the last window more was admitted than is bounded, as its store lost its memory an unknown number of times
	ReportsMissing                // the newest window that is over was not accounted for by every holder
	Measured                      // every window that was measured stayed within its bound
	Starting                      // no window of this generation was measured yet
	NoTraffic                     // no holder reported a request
)

// Figures are what is known of one limit. With several rates an overshoot is that
// of the worst rate, and the under-utilization that of the best: what one rate
// refuses leaves the others' budget unused.
type Figures struct {
	Generation       int64
	Verdict          Verdict
	Flow             meter.Flow
	ActiveKeys       int64             // the most that one holder tracks
	Overshoot        *Overshoot        // nil until a window was measured
	UnderUtilization *UnderUtilization // nil until a full window of every rate was measured
	Hottest          []HotKey          // the keys asked for most lately, most first; of a limit with a key
	Vanished         []string          // UIDs of pods that vanished before they accounted for all; ascending
	Open             *OpenWindow       // nil until one is heard of, and of a limit with a key
}

// Overshoot is Δ in units of cost; of a limit with a key, that of the worst key.
type Overshoot struct {
	WindowEnd time.Time // of the window measured last, on the store's clock; zero: none, only Worst is known
	Observed  int64     // in that window
	Bound     int64     // what holders may have admitted beyond the limit of that window
	Unbounded bool      // nothing bounds what was admitted: Bound does not hold
	Worst     int64     // since the generation began, at least
	WorstEnd  time.Time // of the window with Worst; zero while that is 0

	WorstUnbounded bool // as Unbounded, in the window with Worst

	// AtLeast says that Worst may be more: of some windows since the generation began not
	// all is known.
	AtLeast bool
	Excess  int64 // the most that a window of the generation admitted beyond its Bound, at least
}

// UnderUtilization is U in basis points of the limit, from windows that lay
// wholly within one generation of the policy and one term of the leader.
type UnderUtilization struct {
	Observed int32 // in the last of them
	Worst    int32 // since the generation began
}

// BasisPoints make a whole.
const BasisPoints = 10_000

// Figures returns what is known at the instant now.
func (l *Limit) Figures(now time.Time) Figures {
	out := Figures{
		Generation:       l.generation,
		Verdict:          l.verdict(),
		Flow:             l.meter.Flow(now),
		Overshoot:        l.overshoot(),
		UnderUtilization: l.underUtilization(),
		Hottest:          l.hottest(),
		Vanished:         l.vanished(),
		Open:             l.open(),
	}
	for _, m := range l.members {
		out.ActiveKeys = max(out.ActiveKeys, m.activeKeys)
	}
	return out
}

func (l *Limit) verdict() Verdict {
	verdict := NoTraffic
	if l.traffic {
		verdict = Starting
	}
	owing := l.owing()
	for _, f := range l.figures {
		switch {
		case f.excess > 0:
			verdict = min(verdict, Exceeded)
		case f.failOpen:
			verdict = min(verdict, FailOpen)
		case f.forgotten:
			verdict = min(verdict, MemoryLost)
		case f.missing || owing && f.measured:
			verdict = min(verdict, ReportsMissing)
		case f.measured:
			verdict = min(verdict, Measured)
		}
	}
	return verdict
}

func (l *Limit) overshoot() *Overshoot {
	var out *Overshoot
	for _, r := range l.promised.rates() {
		f := l.figures[windowsOf(r)]
		last := l.last(f)
		if last.WindowEnd.IsZero() && f.worst == 0 {
			continue
		}
		if out == nil {
			out = &Overshoot{}
		}
		if out.Observed <= last.Observed {
			out.Observed, out.WindowEnd = last.Observed, last.WindowEnd
		}
		out.Bound, out.Excess = max(out.Bound, last.Bound), max(out.Excess, f.excess)
		out.AtLeast = out.AtLeast || l.partial(f)
		out.Unbounded = out.Unbounded || last.Unbounded
		if f.worst > out.Worst {
			out.Worst, out.WorstEnd, out.WorstUnbounded = f.worst, f.worstEnd, f.limitless
		}
	}
	return out
}

// last returns the window of the rate that was measured last, none while a holder is owing
// what it did in it.
func (l *Limit) last(f *figure) Overshoot {
	if l.owing() {
		return Overshoot{}
	}
	return f.window
}

func (l *Limit) underUtilization() *UnderUtilization {
	unused, ok := l.leastUnused()
	if !ok {
		return nil
	}
	return &UnderUtilization{Observed: unused, Worst: l.worstUnused}
}

// leastUnused returns U of the rate that was used best, once every rate was
// measured over a full window.
func (l *Limit) leastUnused() (int32, bool) {
	least := int32(BasisPoints)
	for _, r := range l.promised.Promise.Rates {
		f := l.figures[windowsOf(r)]
		if !f.full {
			return 0, false
		}
		least = min(least, f.unused)
	}
	return least, len(l.promised.Promise.Rates) > 0
}
