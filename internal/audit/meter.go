package audit

import "time"

// Flow is how much a fleet decides, averaged over the last ten to twenty seconds
// or, when windows are longer, over one to two windows of up to a minute.
type Flow struct {
	AdmittedPerSecond float64 // units of cost
	RejectedPerSecond float64
	// RequestsPerRoundTrip is how many units one call of the store decided; 0 when
	// the store was not called.
	RequestsPerRoundTrip float64
}

// Bounds of how long a meter gathers before it lets the span before go. Within
// one window traffic is uneven: what the budget admits comes first.
const (
	shortestSpan = 10 * time.Second
	longestSpan  = time.Minute
)

// A meter averages totals over the present span and the one before.
type meter struct {
	span         time.Duration
	began        time.Time // of the present span; zero before the first add
	current      Totals
	previous     Totals
	previousTook time.Duration
}

func (m *meter) add(t Totals, now time.Time) {
	m.roll(now)
	m.current = m.current.plus(t)
}

func (m *meter) roll(now time.Time) {
	if m.began.IsZero() {
		m.began = now
	}
	took := now.Sub(m.began)
	if took < m.span {
		return
	}
	m.previous, m.previousTook = m.current, took
	m.current, m.began = Totals{}, now
}

func (m *meter) flow(now time.Time) Flow {
	sum, took := m.recent(now)
	if took == 0 {
		return Flow{}
	}
	flow := Flow{
		AdmittedPerSecond: float64(sum.Admitted) / took,
		RejectedPerSecond: float64(sum.Refused) / took,
	}
	if sum.RoundTrips > 0 {
		flow.RequestsPerRoundTrip = float64(sum.Admitted+sum.Refused) / float64(sum.RoundTrips)
	}
	return flow
}

// recent returns what was added in the last two spans, and how many seconds they took.
func (m *meter) recent(now time.Time) (sum Totals, took float64) {
	m.roll(now)
	return m.previous.plus(m.current), (m.previousTook + now.Sub(m.began)).Seconds()
}

func (t Totals) plus(u Totals) Totals {
	return Totals{Admitted: t.Admitted + u.Admitted, Refused: t.Refused + u.Refused, RoundTrips: t.RoundTrips + u.RoundTrips}
}

// since returns what t counts beyond u, never less than nothing.
func (t Totals) since(u Totals) Totals {
	return Totals{
		Admitted:   max(0, t.Admitted-u.Admitted),
		Refused:    max(0, t.Refused-u.Refused),
		RoundTrips: max(0, t.RoundTrips-u.RoundTrips),
	}
}

// spans are the present span and the one before, each at least shortestSpan long.
type spans struct{ began time.Time }

// roll reports whether the present span is over, and begins the next.
func (s *spans) roll(now time.Time) bool {
	if s.began.IsZero() {
		s.began = now
	}
	if now.Sub(s.began) < shortestSpan {
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
	last          UnderUtilization
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

func (u *unused) figure() *UnderUtilization {
	if !u.known {
		return nil
	}
	out := u.last
	return &out
}
