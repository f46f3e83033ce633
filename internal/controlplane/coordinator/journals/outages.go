package journals

import "github.com/weir-dev/weir/pkg/limiter"

// maxOutages bounds how many changes of leader are remembered.
const maxOutages = 512

// outages are the spans in which no leader served, if holders may have begun a window in one
// by themselves that is still open.
type outages struct {
	Term uint64          `json:"term"` // that served last
	At   limiter.Instant `json:"at"`   // and when at least
	Gaps []limiter.Gap   `json:"gaps"`
}

// follow adds the time from when the term before served last until all holders are back.
func (o outages) follow(term uint64, served limiter.Instant, now, back limiter.Instant) outages {
	if o.Term+1 != term || served == 0 {
		served = o.At // it knows of no other term
	}
	next := outages{Term: term, At: now}
	for _, g := range o.Gaps {
		if g.To.Add(limiter.MaxWindow) > now {
			next.Gaps = append(next.Gaps, g)
		}
	}
	if o.Term > 0 {
		next.Gaps = append(next.Gaps, limiter.Gap{From: min(served, back), To: back})
	}
	if more := len(next.Gaps) - maxOutages; more > 0 {
		next.Gaps[more].From = next.Gaps[0].From
		next.Gaps = next.Gaps[more:]
	}
	return next
}
