package enforce

import (
	"net/http"
	"time"

	"github.com/weir-dev/weir/internal/sidecar/count"
	"github.com/weir-dev/weir/pkg/twotier"
)

// A share is what one limit decided about a request that others judge too.
type share struct {
	limit    *limit
	value    string
	cost     int64 // that was charged
	decision twotier.Decision
}

// settles reports whether the response has a say in what the limit is charged.
func (s *share) settles() bool { return s.limit.Settles() && s.decision.Allowed }

// settle reports whether the header names the cost. Only the first that does counts.
func (s *share) settle(header http.Header) (named bool) {
	if header.Get(s.limit.Limit.Cost.ResponseHeader) == "" {
		return false
	}
	if units := s.decision.Settle(s.limit.Settle(header, s.cost)); units != 0 {
		s.limit.counts.Correct(s.event(), units)
	}
	return true
}

func (s *share) forget() {
	s.decision.Cancel()
	if s.decision.Paid != 0 {
		s.limit.counts.Pay(time.Now(), s.event())
	}
}

// cancel takes back what was granted to a request that does not pass, but not what was
// paid along with it.
func cancel(taken []share) {
	for i := range taken {
		taken[i].forget()
	}
}

func countAll(taken []share) {
	now := time.Now()
	for i := range taken {
		taken[i].limit.counts.Count(now, taken[i].event())
	}
}

// event returns what the limit decided, or in shadow would have decided.
func (s *share) event() count.Event {
	d := &s.decision
	e := count.Event{
		Outcome:    s.outcome(),
		Value:      s.value,
		Cost:       s.cost,
		Paid:       d.Paid,
		Windows:    d.Windows,
		Since:      s.limit.Policy.Since,
		Local:      d.Source == twotier.FromLocalShare || d.Source == twotier.FromFailureAction,
		LocalShare: d.LocalShare,
	}
	if s.limit.windowCoupled {
		e.EndsIn = d.ResetAfter
	}
	if kept, ok := d.Kept(s.value); ok {
		e.Value, e.Lasting = kept, true
	}
	return e
}

func (s *share) outcome() count.Outcome {
	unavailable := causeOf(s.decision) != QuotaExceeded
	switch {
	case s.decision.Allowed && unavailable:
		return count.FailedOpen
	case s.decision.Allowed:
		return count.Admitted
	case s.limit.shadow:
		return count.ShadowRefused
	case unavailable:
		return count.FailedClosed
	default:
		return count.Refused
	}
}

func causeOf(d twotier.Decision) Cause {
	switch d.Source {
	case twotier.FromFailureAction:
		return StoreUnavailable
	case twotier.FromDrain:
		return StoreDraining
	default:
		return QuotaExceeded
	}
}
