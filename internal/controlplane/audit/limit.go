package audit

import (
	"time"

	"github.com/weir-dev/weir/internal/controlplane/audit/meter"
	"github.com/weir-dev/weir/pkg/limiter"
)

// Bounds of what one Limit remembers. Keys are the bulk, so limits with a key
// remember fewer windows. They never remember fewer than it takes to measure the first of
// them: until every holder has reported twice and answered.
const (
	retainedTuples      = 32
	retainedKeyedTuples = 16
	measureReports      = 8 // intervals
	maxLosses           = 256
	maxWindows          = 1024
)

// slackReports is how many intervals may pass until what a holder does is known
// here: one until it reports, and one for delays on the way.
const slackReports = 2

// A Limit audits one limit of one policy. It is not safe for concurrent use.
type Limit struct {
	interval   time.Duration
	generation int64
	promised   Config
	keyed      bool
	// shortest and longest are the lengths of the windows that are promised.
	shortest, longest time.Duration
	before            legacy

	// known is when the audit began to know every holder, and since that or when the
	// generation began. For a window that began before since, it shows only what it admitted
	// at least.
	known, since time.Time
	// changed is when a holder last began to enforce another generation; windows
	// that began before mix promises.
	changed time.Time

	members map[Holder]*member
	// losses holds when holders vanished. A window that may have begun before is
	// unknown even when it is first heard of later.
	losses map[Holder]time.Time

	// accounts are those of members and of holders that vanished.
	accounts map[Holder]*account
	running  map[string]Holder // the process that joined last, by the pod's UID

	// unplaced is when it was last found that something was admitted that is in no row.
	// A window that may have begun before is unknown.
	unplaced time.Time

	rows    map[tuple]map[Holder]counted
	windows map[windowID]*window
	periods []*period // from the first that was heard of to the last
	queries uint64

	unbroken []Unbroken // what is known of the memory of the store

	figures     map[limiter.Rate]*figure // by what windowsOf returns
	worstUnused int32
	traffic     bool
	meter       meter.Meter
}

// New returns the audit of a limit whose holders report every interval. From
// since on it knows every holder; windows that may have begun before are not
// measured, but show what they admitted at least.
func New(interval time.Duration, c Config, since time.Time) *Limit {
	l := &Limit{
		interval: interval,
		known:    since,
		members:  map[Holder]*member{},
		losses:   map[Holder]time.Time{},
		accounts: map[Holder]*account{},
		running:  map[string]Holder{},
		rows:     map[tuple]map[Holder]counted{},
		windows:  map[windowID]*window{},
	}
	l.adopt(c, since)
	return l
}

// Reconfigure begins another generation: all figures but the flow begin again, with
// windows that begin later. Units that an earlier window admits are still held against its
// bound, and until every holder enforces the generation a window may hold the larger of both
// limits. A lower generation changes nothing, nor does an equal one that promises the same. What
// a FederatedBudget promises is edited by itself.
func (l *Limit) Reconfigure(c Config, now time.Time) {
	if c.Generation >= l.generation && c.Since != l.promised.Since {
		l.move(c.Since)
	}
	if c.Generation < l.generation || c.Generation == l.generation && c.promisesAs(&l.promised) {
		l.promised.Reset = max(l.promised.Reset, c.Reset) // which comes without another generation
		return
	}
	if c.Keyed != l.keyed {
		l.forget()
	}
	l.remember(now)
	l.adopt(c, now)
}

func (l *Limit) adopt(c Config, now time.Time) {
	l.generation, l.promised, l.keyed, l.changed = c.Generation, c, c.Keyed, now
	if l.current() == nil {
		l.begin(c.Since)
	}
	for _, p := range l.periods {
		p.adopted = p.reached
	}
	l.since = later(l.since, now)
	l.worstUnused = 0
	rates := c.rates()
	l.figures = make(map[limiter.Rate]*figure, len(rates))
	l.shortest, l.longest = duration(limiter.MaxWindow), 0
	for _, r := range rates {
		l.figures[windowsOf(r)] = &figure{}
		l.shortest, l.longest = min(l.shortest, duration(r.Window)), max(l.longest, duration(r.Window))
	}
	l.meter.Cover(l.longest)
}

func duration(d limiter.Micros) time.Duration { return time.Duration(d) * time.Microsecond }

func earlier(t, u time.Time) time.Time {
	if u.Before(t) {
		return u
	}
	return t
}

func later(t, u time.Time) time.Time {
	if u.After(t) {
		return u
	}
	return t
}
