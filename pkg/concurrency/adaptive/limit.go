package adaptive

import "github.com/weir-dev/weir/pkg/limiter"

// A Limit is what one holder infers. It is owned by one caller at a time.
type Limit struct {
	config   Config
	estimate float64
	followed int64 // the fleet's limit, 0 when the holder is alone
	holders  int64 // of the fleet, at least 1
	learned  uint64
	rested   float64 // limit in force when the baseline was last known to be right
	calm     int     // rounds in a row that filled the limit and showed the baseline
	severe   int     // rounds in a row that were as bad as one can be
	starting bool    // there is no sign of load, so the limit grows fast
	round    round
	baseline baseline
	probe    probe
	latency  limiter.Micros // of the last sample that was served
}

// Use is how much was in flight when a request was admitted.
type Use struct {
	InFlight int64 // with the request itself
	Ceiling  int64 // that was in force
}

// New returns a limit that has seen nothing. The configuration has to be valid.
func New(c Config) *Limit {
	l := &Limit{estimate: float64(c.Initial), holders: 1, starting: true}
	l.Reconfigure(c)
	return l
}

// Reconfigure goes on under another valid configuration. The estimate and the baseline
// stay, as far as its bounds allow.
func (l *Limit) Reconfigure(c Config) {
	l.estimate = c.clamp(float64(l.Limit()))
	l.config = c
	l.baseline.resize(c)
	l.probe, l.round = probe{}, round{}
}

// Limit returns how many requests the backend bears at once, from Min to Max.
func (l *Limit) Limit() int64 {
	if l.config.Algorithm == Fixed {
		return l.config.Max
	}
	return int64(l.estimate)
}

// Ceiling returns how many the holder may have in flight: the limit, and less while
// it measures the latency without load. It begins and ends measurements; now must not
// go back.
func (l *Limit) Ceiling(now limiter.Instant) int64 {
	if l.probing(now) {
		return min(l.Limit(), l.probeLimit())
	}
	return l.Limit()
}

// Sample learns from a request that ended now and took rtt, counted from when it was
// forwarded. Dropped says that the backend failed it for overload or did not answer in
// time; how long that took is not latency. Among requests that end at once, one may be
// reported after one that ended a little later.
func (l *Limit) Sample(now limiter.Instant, rtt limiter.Micros, use Use, dropped bool) {
	rtt = max(rtt, 1)
	if l.probing(now) {
		l.measure(now, rtt, dropped)
		return
	}
	if !dropped {
		l.latency = rtt
	}
	if l.config.Algorithm == Fixed {
		return
	}
	if !dropped && l.baseline.observe(now, rtt) {
		l.rested = l.inForce()
	}
	l.round.add(now, rtt, l.filled(use), dropped)
	if l.round.complete(now, l.latency) {
		l.judge(l.round)
	}
}

// Follow sets the limit that the fleet works by from now on, and how many holders it
// has. The samples until the next call correct that limit by one step, however many
// there are: more would judge a limit that nobody tried yet.
func (l *Limit) Follow(limit, holders int64) {
	if float64(limit) > l.inForce() {
		l.round.retry()
	}
	l.followed, l.holders = limit, max(1, holders)
}

// Adopt follows the fleet's limit and takes it over, for a holder that learned nothing
// since it heard of one.
func (l *Limit) Adopt(limit, holders int64) {
	l.Follow(limit, holders)
	l.estimate = l.config.clamp(float64(limit))
}

// Alone goes on without knowing what the fleet works by: the estimate corrects itself.
func (l *Limit) Alone() { l.followed = 0 }

// Learned counts how often the estimate was judged. While the count stands still the
// estimate is old: too little was in flight to judge, or nothing.
func (l *Limit) Learned() uint64 { return l.learned }

// Baseline returns the latency without load, 0 while it is not known. Fixed knows none.
func (l *Limit) Baseline() limiter.Micros { return l.baseline.latency() }

// Latency returns how long the last request took that was served, 0 before the first.
func (l *Limit) Latency() limiter.Micros { return l.latency }
