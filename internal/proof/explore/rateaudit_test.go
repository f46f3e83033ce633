package explore_test

import (
	"encoding/binary"

	"github.com/weir-dev/weir/pkg/limiter"
	"github.com/weir-dev/weir/pkg/twotier/account"
)

// bucketAudit holds to Burst + Limit·x/Window what is spent in any interval of
// length x. A bucket that each unit fills by Window when it is spent, and that each
// microsecond drains by Limit, stands at the most of all intervals that end now.
type bucketAudit struct {
	rate  limiter.Rate
	tick  limiter.Micros
	level int64
	// ceiling is what the level may be. After an edit that lowers the burst it is
	// at first what was granted before, and drains.
	ceiling int64
}

func auditBucket(p limiter.Params, tick limiter.Micros) bucketAudit {
	a := bucketAudit{rate: p.Rates[0], tick: tick}
	a.ceiling = a.brim()
	return a
}

// brim is the level that the burst fills.
func (a bucketAudit) brim() int64 {
	if a.rate.Burst == 0 {
		return a.rate.Limit * int64(a.rate.Window)
	}
	return a.rate.Burst * int64(a.rate.Window)
}

func (a bucketAudit) passed(limiter.Instant) auditor {
	drained := int64(a.tick) * a.rate.Limit
	a.level, a.ceiling = max(0, a.level-drained), max(a.brim(), a.ceiling-drained)
	return a
}

func (a bucketAudit) asked(p limiter.Params, inHand int64) auditor {
	if a.rate == p.Rates[0] {
		return a
	}
	old := int64(a.rate.Window)
	a.rate = p.Rates[0]
	scaled := a.level * int64(a.rate.Window)
	a.level = scaled / old
	a.ceiling = max(a.brim(), (scaled+old-1)/old+inHand*int64(a.rate.Window))
	return a
}

func (a bucketAudit) granted(int64, limiter.Result) auditor { return a }

func (a bucketAudit) spent(units int64, _ account.Charge) auditor {
	a.level += units * int64(a.rate.Window)
	return a
}

// excess counts a part of a unit as a whole one.
func (a bucketAudit) excess() int64 {
	over, unit := a.level-a.ceiling, int64(a.rate.Window)
	if over > 0 {
		return (over + unit - 1) / unit
	}
	return -(-over / unit)
}

func (a bucketAudit) encode(b []byte) []byte {
	b = binary.AppendVarint(b, a.level)
	return binary.AppendVarint(b, a.ceiling-a.brim())
}

// slidingAudit holds to Limit what is spent in any interval of length Window.
type slidingAudit struct {
	rate   limiter.Rate
	tick   limiter.Micros
	spends [maxTicks]int64 // of the ticks up to now, the present one first
	// ceiling is what may be spent, for some ticks after an edit that lowers the
	// limit: what was granted before.
	ceiling, ticks int64
}

// maxTicks is the longest window that a slidingAudit can hold to its limit.
const maxTicks = 6

func (a slidingAudit) passed(limiter.Instant) auditor {
	copy(a.spends[1:], a.spends[:])
	a.spends[0] = 0
	clear(a.spends[a.span():])
	if a.ticks--; a.ticks <= 0 {
		a.ticks, a.ceiling = 0, 0
	}
	return a
}

// span is the number of ticks in a window.
func (a slidingAudit) span() int64 { return int64(a.rate.Window / a.tick) }

func (a slidingAudit) sum() int64 {
	var total int64
	for _, n := range a.spends[:a.span()] {
		total += n
	}
	return total
}

func (a slidingAudit) asked(p limiter.Params, inHand int64) auditor {
	if a.rate == p.Rates[0] {
		return a
	}
	a.ceiling, a.ticks = a.sum()+inHand, 2*maxTicks
	a.rate = p.Rates[0]
	return a
}

func (a slidingAudit) granted(int64, limiter.Result) auditor { return a }

func (a slidingAudit) spent(units int64, _ account.Charge) auditor {
	a.spends[0] += units
	return a
}

func (a slidingAudit) excess() int64 { return a.sum() - max(a.rate.Limit, a.ceiling) }

func (a slidingAudit) encode(b []byte) []byte {
	for _, n := range a.spends[:a.span()] {
		b = binary.AppendVarint(b, n)
	}
	return binary.AppendVarint(binary.AppendVarint(b, a.ceiling), a.ticks)
}
