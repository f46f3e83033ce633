package journal

import "github.com/weir-dev/weir/pkg/limiter"

const (
	// minPace is the shortest pause between two writes of a policy, on average, and
	// bytesPerSecond how much of it is written.
	minPace        = limiter.Second
	bytesPerSecond = 64 << 10
	// burst is how many writes may come before their time when somebody waits.
	burst = 4
)

// A Pace says when a policy's next record may be written (GCRA, so that a few that
// somebody waits for need not wait). The zero value lets the first be written at once.
type Pace struct {
	due  limiter.Instant // when a write is due that nobody waits for
	cost limiter.Micros  // of the last record
}

// Of returns how long passes between two writes when one follows the other.
func (p Pace) Of() limiter.Micros { return max(minPace, p.cost) }

// Next returns when the next record may be written.
func (p Pace) Next(urgent bool) limiter.Instant {
	if urgent {
		return p.due.Add(-burst * p.Of())
	}
	return p.due
}

// Wrote returns the pace after a record of that size, in bytes, was written.
func (p Pace) Wrote(now limiter.Instant, bytes int) Pace {
	p.cost = limiter.Micros(int64(bytes) * int64(limiter.Second) / bytesPerSecond)
	p.due = max(p.due, now).Add(p.Of())
	return p
}
