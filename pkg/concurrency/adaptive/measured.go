package adaptive

import "github.com/weir-dev/weir/pkg/limiter"

// windowSamples is how many samples a window has. Latency that varies as much as its
// mean is known to about a fifth by that number of samples.
const windowSamples = 40

// A measured baseline is a mean latency without load. It falls by what windows of
// samples show, and rises only by a measurement.
type measured struct {
	latency   limiter.Micros // 0 when there is none yet
	window    window
	judged    limiter.Instant // end of the last window
	confirmed limiter.Instant // end of the last window that showed the baseline
	whole     bool            // there was a window already
	found     limiter.Micros  // the baseline when it was measured last, 0 if it never was
}

// A window is samples that are judged together, by their mean: single samples of a
// backend that answers some requests sooner than others say little.
type window struct {
	samples int64
	sum     limiter.Micros
}

func (w *window) add(rtt limiter.Micros) {
	w.samples++
	w.sum += rtt
}

// mean returns the mean latency of at least one sample.
func (w *window) mean() limiter.Micros { return w.sum / limiter.Micros(w.samples) }

// observe takes one sample, and reports whether it ends a window that confirms the
// baseline.
func (m *measured) observe(now limiter.Instant, rtt limiter.Micros) bool {
	m.window.add(rtt)
	mean := m.window.mean()
	if !m.whole {
		m.latency = mean
	}
	if m.window.samples < windowSamples {
		return false
	}
	m.window, m.whole, m.judged = window{}, true, now
	if mean > slack(m.latency) {
		return false
	}
	m.confirmed = now
	m.latency = min(m.latency, (m.latency+mean)/2)
	return true
}

// unfounded reports whether the baseline is far below what was measured, if it ever was:
// it is the least latency since, which may be one under load.
func (m *measured) unfounded() bool { return m.whole && (m.found == 0 || m.found > slack(m.latency)) }

// unconfirmed returns for how long windows have not shown the baseline.
func (m *measured) unconfirmed() limiter.Micros { return m.judged.Sub(m.confirmed) }

// adopt sets the baseline that was measured.
func (m *measured) adopt(now limiter.Instant, latency limiter.Micros) {
	*m = measured{latency: latency, judged: now, confirmed: now, whole: true, found: latency}
}

// slack returns the most that a mean latency may be that shows the baseline.
func slack(baseline limiter.Micros) limiter.Micros { return baseline + baseline/4 }
