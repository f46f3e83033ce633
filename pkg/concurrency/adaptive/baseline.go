package adaptive

import "github.com/weir-dev/weir/pkg/limiter"

// A baseline is the latency without load, known in one of two ways. The zero baseline
// knows none.
type baseline struct {
	kind     BaselineType
	measured measured
	rolling  rolling
}

// resize goes on as c says and keeps what is known.
func (b *baseline) resize(c Config) {
	known, was := b.latency(), *b
	*b = baseline{kind: c.Baseline.Type}
	switch {
	case c.Algorithm == Fixed:
	case b.kind == Rolling:
		b.rolling = newRolling(c.Baseline.Samples)
		if known > 0 {
			b.rolling.observe(known)
		}
	case was.kind == Measured:
		b.measured = was.measured
	case known > 0:
		b.measured = measured{latency: known, whole: true}
	}
}

// observe takes one sample, and reports whether that confirms a measured baseline.
func (b *baseline) observe(now limiter.Instant, rtt limiter.Micros) bool {
	if b.kind == Measured {
		return b.measured.observe(now, rtt)
	}
	b.rolling.observe(rtt)
	return false
}

// latency returns the baseline, 0 when there is none yet.
func (b *baseline) latency() limiter.Micros {
	if b.kind == Measured {
		return b.measured.latency
	}
	return b.rolling.min()
}

// shown reports whether a mean latency is about a baseline that was measured.
func (b *baseline) shown(mean limiter.Micros) bool {
	m := &b.measured
	return b.kind == Measured && !m.unfounded() && mean <= slack(m.latency) && m.latency <= slack(mean)
}
