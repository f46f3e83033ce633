package explore_test

import (
	"encoding/binary"

	"github.com/weir-dev/weir/pkg/limiter"
	"github.com/weir-dev/weir/pkg/twotier/account"
)

// contract is the auditor of what is in force. An edit to another kind of algorithm
// waits until the windows that are open have ended, or until the store grants by the new
// parameters.
type contract struct {
	auditor
	params limiter.Params
	tick   limiter.Micros
	now    limiter.Instant
	heard  int64           // newest generation
	next   *limiter.Params // waits; nil when nothing does
}

// contractOf returns the auditor of a fleet that begins with p.
func contractOf(p limiter.Params, tick limiter.Micros) contract {
	return contract{tick: tick, now: epoch}.enter(p)
}

// enter puts p into force.
func (c contract) enter(p limiter.Params) contract {
	c.params, c.next = p, nil
	switch kindOf(p.Algorithm) {
	case 'w':
		c.auditor = windowAudit{params: p, now: c.now}
	case 's':
		c.auditor = slidingAudit{rate: p.Rates[0], tick: c.tick}
	default:
		c.auditor = auditBucket(p, c.tick)
	}
	return c
}

// kindOf distinguishes algorithms between which an edit has to wait.
func kindOf(a limiter.Algorithm) byte {
	switch a {
	case limiter.FixedWindow:
		return 'w'
	case limiter.SlidingWindow, limiter.SlidingLog:
		return 's'
	default:
		return 'b'
	}
}

func (c contract) passed(now limiter.Instant) auditor {
	c.auditor, c.now = c.auditor.passed(now), now
	return c.unlessOpen()
}

func (c contract) asked(p limiter.Params, inHand int64) auditor {
	if p.Generation < c.heard {
		return c // what is newer stays in force
	}
	c.heard = p.Generation
	if kindOf(p.Algorithm) == kindOf(c.params.Algorithm) {
		c.auditor, c.params, c.next = c.auditor.asked(p, inHand), p, nil
		return c
	}
	c.next = &p
	if w, ok := c.auditor.(windowAudit); ok {
		w.params.Rates = nil // what ends does not begin again
		c.auditor = w
	}
	return c.unlessOpen()
}

// unlessOpen puts what waits for windows into force when none is open.
func (c contract) unlessOpen() contract {
	if w, ok := c.auditor.(windowAudit); ok && c.next != nil && w.n == 0 {
		return c.enter(*c.next)
	}
	return c
}

func (c contract) granted(units int64, res limiter.Result) auditor {
	if c.next != nil && units > 0 && kindOf(res.Algorithm) == kindOf(c.next.Algorithm) {
		c = c.enter(*c.next)
		c.auditor = c.auditor.asked(c.params, 0)
	}
	c.auditor = c.auditor.granted(units, res)
	return c
}

func (c contract) spent(units int64, charge account.Charge) auditor {
	c.auditor = c.auditor.spent(units, charge)
	return c
}

func (c contract) encode(b []byte) []byte {
	b = c.auditor.encode(append(b, kindOf(c.params.Algorithm)))
	if c.next != nil {
		b = binary.AppendVarint(b, c.next.Generation)
	}
	return b
}
