package meter

import "time"

// Counts are of units of cost and of calls.
type Counts struct {
	Admitted, Refused int64
	RoundTrips        int64 // calls of the store
}

// Flow is how much a fleet decides, averaged over the last two spans.
type Flow struct {
	AdmittedPerSecond float64 // units of cost
	RejectedPerSecond float64
	// RequestsPerRoundTrip is how many units one call of the store decided; 0 when
	// the store was not called.
	RequestsPerRoundTrip float64
}

// ShortestSpan and longestSpan bound how long a meter gathers before it drops the span
// before. Within one window traffic is uneven: what the budget admits comes first.
const (
	ShortestSpan = 10 * time.Second
	longestSpan  = time.Minute
)

// A Meter averages counts over the present span and the one before. A span takes
// ShortestSpan, or as long as the windows that the meter covers. The zero Meter is ready
// to use. It is not safe for concurrent use.
type Meter struct {
	covered      time.Duration
	began        time.Time // of the present span; zero before the first Add
	current      Counts
	previous     Counts
	previousTook time.Duration
}

// Cover makes spans as long as a window, up to a minute.
func (m *Meter) Cover(window time.Duration) { m.covered = window }

// Add adds what was counted up to the instant now.
func (m *Meter) Add(c Counts, now time.Time) {
	m.roll(now)
	m.current = m.current.plus(c)
}

func (m *Meter) roll(now time.Time) {
	if m.began.IsZero() {
		m.began = now
	}
	took := now.Sub(m.began)
	if took < min(max(ShortestSpan, m.covered), longestSpan) {
		return
	}
	m.previous, m.previousTook = m.current, took
	m.current, m.began = Counts{}, now
}

// Flow returns the averages at the instant now.
func (m *Meter) Flow(now time.Time) Flow {
	sum, seconds := m.Recent(now)
	if seconds == 0 {
		return Flow{}
	}
	flow := Flow{
		AdmittedPerSecond: float64(sum.Admitted) / seconds,
		RejectedPerSecond: float64(sum.Refused) / seconds,
	}
	if sum.RoundTrips > 0 {
		flow.RequestsPerRoundTrip = float64(sum.Admitted+sum.Refused) / float64(sum.RoundTrips)
	}
	return flow
}

// Recent returns what was added in the last two spans, and how many seconds they took.
func (m *Meter) Recent(now time.Time) (sum Counts, seconds float64) {
	m.roll(now)
	return m.previous.plus(m.current), (m.previousTook + now.Sub(m.began)).Seconds()
}

func (c Counts) plus(d Counts) Counts {
	return Counts{Admitted: c.Admitted + d.Admitted, Refused: c.Refused + d.Refused, RoundTrips: c.RoundTrips + d.RoundTrips}
}

// Since returns what was counted after before. A count that fell, because its process
// began again, counts as 0.
func (c Counts) Since(before Counts) Counts {
	return Counts{
		Admitted:   max(0, c.Admitted-before.Admitted),
		Refused:    max(0, c.Refused-before.Refused),
		RoundTrips: max(0, c.RoundTrips-before.RoundTrips),
	}
}
