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
