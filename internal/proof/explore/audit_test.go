package explore_test

import (
	"encoding/binary"
	"slices"

	"github.com/weir-dev/weir/pkg/limiter"
	"github.com/weir-dev/weir/pkg/twotier/account"
)

// An auditor counts what is let through, at the instant it is, against what the
// limit promises. It sees neither the store's state nor the holders' credits.
type auditor interface {
	// passed notes that a tick passed, and what the store's clock reads.
	passed(now limiter.Instant) auditor
	// asked notes that the store decides by p, while holders have that many units in
	// hand.
	asked(p limiter.Params, inHand int64) auditor
	// granted notes what a result granted, or took back.
	granted(units int64, res limiter.Result) auditor
	// spent notes that units were let through now, or that an earlier admission was
	// cancelled.
	spent(units int64, c account.Charge) auditor
	// excess returns by how much the promise was broken, at most 0 when it was kept.
	excess() int64
	encode(b []byte) []byte
}

// windowAudit holds fixed windows to their limits. A window binds from the first
// command in it to its end. Windows that an edit does not name are not begun again,
// and what it names besides begins when they have ended.
type windowAudit struct {
	extra   int64 // may be admitted on top of the limit
	params  limiter.Params
	now     limiter.Instant
	n       int
	budgets [4]budget
}

// A budget is what one window allows.
type budget struct {
	limiter.OpenWindow       // Granted is what the store handed out
	most               int64 // the highest limit that was in force
	admitted           int64
	over               bool // the store granted beyond the limit in force
}

func auditWindows(p limiter.Params, extra int64) windowAudit {
	return windowAudit{params: p, extra: extra, now: epoch}
}

func (a windowAudit) open() []budget { return a.budgets[:a.n] }

// begin opens the windows of the newest parameters, unless others have to end.
func (a windowAudit) begin() windowAudit {
	for _, b := range a.open() {
		if !a.names(b.Rate) {
			return a
		}
	}
	for _, r := range a.params.Rates {
		if a.find(r) < 0 {
			a.budgets[a.n] = budget{OpenWindow: r.WindowAt(a.now), most: r.Limit}
			a.n++
		}
	}
	return a
}

func (a windowAudit) names(r limiter.Rate) bool {
	for _, p := range a.params.Rates {
		if p.Window == r.Window {
			return true
		}
	}
	return false
}

// find returns the place of the open window of a rate, -1 when it has none.
func (a windowAudit) find(r limiter.Rate) int {
	for i, b := range a.open() {
		if b.Window == r.Window {
			return i
		}
	}
	return -1
}

func (a windowAudit) passed(now limiter.Instant) auditor {
	n := a.n
	a.n, a.now = 0, now
	for _, b := range a.budgets[:n] {
		if b.Contains(now) {
			a.budgets[a.n] = b
			a.n++
		}
	}
	clear(a.budgets[a.n:])
	return a
}

func (a windowAudit) asked(p limiter.Params, _ int64) auditor {
	a.params = p
	for _, r := range p.Rates {
		if i := a.find(r); i >= 0 {
			a.budgets[i].Rate, a.budgets[i].most = r, max(a.budgets[i].most, r.Limit)
		}
	}
	return a.begin()
}

func (a windowAudit) granted(units int64, _ limiter.Result) auditor {
	for i := range a.open() {
		b := &a.budgets[i]
		b.Granted += units
		b.over = b.over || units > 0 && b.Granted > b.Limit
	}
	return a
}

func (a windowAudit) spent(units int64, c account.Charge) auditor {
	a = a.begin()
	for i := range a.open() {
		b := &a.budgets[i]
		if units > 0 || c.Windows.Open[0].Index == b.Index {
			b.admitted += units
		}
	}
	return a
}

func (a windowAudit) excess() int64 {
	over := -a.extra - limiter.MaxLimit
	for _, b := range a.open() {
		over = max(over, b.admitted-b.most-a.extra)
		if b.over {
			over = max(over, b.Granted-b.Limit)
		}
	}
	return over
}

func (a windowAudit) encode(b []byte) []byte {
	for _, v := range a.open() {
		over := int64(0)
		if v.over {
			over = 1
		}
		for _, x := range []int64{v.Limit, int64(v.Window), v.Granted, v.most, v.admitted, over} {
			b = binary.AppendVarint(b, x)
		}
	}
	return b
}

// chargeAudit holds to the limit what is charged to each window, whenever it is
// spent. It is for stores whose clock steps back, so that a window may be open
// more than once.
type chargeAudit struct {
	limit  int64
	latest int64    // newest window known
	counts [6]int64 // of the latest windows, the newest first
	keep   int      // how many may be open again; 0: 3
}

func (a chargeAudit) upTo(index int64) chargeAudit {
	for ; a.latest < index; a.latest++ {
		copy(a.counts[1:], a.counts[:])
		a.counts[0] = 0
		clear(a.counts[max(3, a.keep):])
	}
	return a
}

func (a chargeAudit) passed(limiter.Instant) auditor { return a }

func (a chargeAudit) asked(limiter.Params, int64) auditor { return a }

func (a chargeAudit) granted(_ int64, res limiter.Result) auditor {
	return a.upTo(res.Windows.Open[0].Index)
}

func (a chargeAudit) spent(units int64, c account.Charge) auditor {
	a.counts[a.latest-c.Windows.Open[0].Index] += units
	return a
}

func (a chargeAudit) excess() int64 { return slices.Max(a.counts[:]) - a.limit }

func (a chargeAudit) encode(b []byte) []byte {
	for _, n := range a.counts {
		b = binary.AppendVarint(b, n)
	}
	return b
}
