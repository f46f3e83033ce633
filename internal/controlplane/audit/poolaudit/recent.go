package poolaudit

import (
	"time"

	"github.com/weir-dev/weir/internal/controlplane/audit"
	"github.com/weir-dev/weir/internal/controlplane/audit/meter"
)

// spans are the present span and the one before, each of meter.ShortestSpan or longer.
type spans struct{ began time.Time }

// roll reports whether the present span is over, and begins the next.
func (s *spans) roll(now time.Time) bool {
	if s.began.IsZero() {
		s.began = now
	}
	if now.Sub(s.began) < meter.ShortestSpan {
		return false
	}
	s.began = now
	return true
}

// recent keeps the most of something over the last ten to twenty seconds.
type recent struct {
	spans
	current, previous int64
}

func (r *recent) see(n int64, now time.Time) {
	r.most(now)
	r.current = max(r.current, n)
}

func (r *recent) most(now time.Time) int64 {
	if r.roll(now) {
		r.previous, r.current = r.current, 0
	}
	return max(r.current, r.previous)
}

// unused averages, over a span, the part of a limit that was free while requests were
// refused.
type unused struct {
	spans
	sum, refusing int64 // of the present span: Σ parts, and samples in which requests were refused
	known         bool  // a span is over
	last          audit.UnderUtilization
}

// sample enters which part of the limit, in basis points, was free.
func (u *unused) sample(refusing bool, free int64, now time.Time) {
	if u.roll(now) {
		u.last.Observed = 0
		if u.refusing > 0 {
			u.last.Observed = int32(u.sum / u.refusing)
		}
		u.last.Worst = max(u.last.Worst, u.last.Observed)
		u.known, u.sum, u.refusing = true, 0, 0
	}
	if refusing {
		u.sum, u.refusing = u.sum+free, u.refusing+1
	}
}

func (u *unused) figure() *audit.UnderUtilization {
	if !u.known {
		return nil
	}
	out := u.last
	return &out
}
