package adaptive

import "github.com/weir-dev/weir/pkg/limiter"

// A probe is a measurement of latency without load.
type probe struct {
	due     limiter.Instant // when the next may begin, 0 before the first instant was seen
	learned uint64          // of the limit at that time an interval ago
	until   limiter.Instant // when it ends at the latest; 0 when none is on
	settled limiter.Instant // from when on a request finds what was in flight before drained
	window  window
}

// probing begins and ends measurements as of now, and reports whether one is on.
//
// A holder that sees no request in the part of the interval that is for measuring leaves
// it out: later it would measure by itself, under the load of all others.
func (l *Limit) probing(now limiter.Instant) bool {
	c, p := &l.config, &l.probe
	if c.Algorithm == Fixed || c.Baseline.Type != Measured {
		return false
	}
	if now >= p.due {
		l.settle(now)
		begun := limiter.Instant(int64(now) / int64(c.Baseline.Interval) * int64(c.Baseline.Interval))
		if p.due != 0 && p.learned != l.learned && l.doubtful() {
			p.until = begun.Add(min(max(c.Baseline.Interval/10, 4*l.latency), c.Baseline.Interval/2))
			p.settled = now.Add(l.latency)
		}
		p.due, p.learned = begun.Add(c.Baseline.Interval), l.learned
	}
	if p.until != 0 && now >= p.until {
		l.settle(now)
	}
	return p.until != 0
}

// measure takes one sample of the measurement. Only requests that were forwarded after
// what had been in flight drained say what latency is without load.
func (l *Limit) measure(now limiter.Instant, rtt limiter.Micros, dropped bool) {
	p := &l.probe
	if dropped || now.Sub(p.settled) < rtt {
		return
	}
	l.latency = rtt
	p.window.add(rtt)
	if p.window.samples >= int64(l.config.Baseline.ProbeSamples) {
		l.settle(now)
	}
}

// settle ends the measurement and adopts what it found, if it found anything.
func (l *Limit) settle(now limiter.Instant) {
	if l.probe.window.samples > 0 {
		found := l.probe.window.mean()
		l.starting = l.starting || found > slack(l.Baseline())
		l.baseline.measured.adopt(now, found)
		l.rested = l.inForce()
	}
	l.probe = probe{due: l.probe.due, learned: l.probe.learned}
}

// probeLimit returns how many the holder may have in flight during a measurement. The
// limit rests where latency is about Tolerance times the baseline, so the limit over that
// is what leaves no queue. Half of it leaves none even if the baseline is twice too high.
func (l *Limit) probeLimit() int64 {
	fleet := l.config.Baseline.ProbeLimit
	if fleet == 0 {
		fleet = int64(l.inForce() / (2 * l.config.Tolerance))
	}
	return max(1, fleet/l.holders)
}

// lasting is for how many intervals the baseline holds while the limit rests.
const lasting = 6

// doubtful reports whether the baseline has to be measured: it never was, or it fell
// since, or for long nothing confirmed it while the limit moved. A limit that rests under
// load that lasts says that the backend did not change; but not for ever.
func (l *Limit) doubtful() bool {
	interval, limit := l.config.Baseline.Interval, l.inForce()
	if limit >= l.rested*3/4 && limit <= l.rested*4/3 {
		interval *= lasting
	}
	m := &l.baseline.measured
	return m.unfounded() || m.unconfirmed() >= interval/2
}
