package poolaudit

import (
	"time"

	"github.com/weir-dev/weir/internal/controlplane/audit"
	"github.com/weir-dev/weir/internal/controlplane/audit/meter"
)

// Config says what the audit of a pool has to know of it.
type Config struct {
	Generation int64
	// Bounded says that what is in flight may never exceed the limit, while every
	// holder works by its share.
	Bounded bool
}

const (
	// silentAfter is after how many intervals a holder that did not report is missed.
	silentAfter = 4
	// localFor is how long requests that were admitted without a share or a slot may be
	// in flight: what exceeds the bound then is not held against it.
	localFor = time.Minute
)

// A Pool audits one concurrency pool: Δ is what was in flight beyond the limit, and U
// the part of the limit that was free while requests were refused.
//
// Δ follows from the coordinator's answers: what can have been in flight, by the
// reserves and by what holders reported beyond them. No coordinator knows of requests that
// passed without a slot: while there are some, Δ is at least what holders report beyond the
// limit. U is taken once in an interval. A holder that refused requests had as many slots in
// use as at its peak, and any other those of its report.
//
// It belongs to one caller at a time.
type Pool struct {
	interval time.Duration // between two reports of a holder
	config   Config
	members  map[audit.Holder]*member

	limit, holders int64 // as a coordinator answered last
	meter          meter.Meter
	keyMissing     meter.Meter             // requests that lack a part of the key
	partitions     map[string]*meter.Meter // by name
	locals         int                     // members that admit by what they infer alone
	local          time.Time               // when one last did
	spared         int64                   // requests that passed without a slot, by the last sample
	sparing        time.Time               // when there last were some
	full           time.Time               // when a request last found no slot of a share
	traffic        bool                    // some member decided a request

	// Of this generation.
	changed  time.Time // when it came; zero for the first
	measured bool
	exceeded bool
	lately   recent
	worst    Overshoot
	unused   unused
	sampled  time.Time
}

type member struct {
	joined   time.Time
	reported time.Time // last; zero for never
	report   Report
	refused  int64 // since the last sample
}

// New returns the audit of a pool without members.
func New(interval time.Duration, c Config) *Pool {
	return &Pool{
		interval: interval, config: c, members: map[audit.Holder]*member{},
		partitions: map[string]*meter.Meter{},
	}
}

// Reconfigure switches to another configuration. Under another generation it forgets what
// was measured before, and the limit.
func (p *Pool) Reconfigure(c Config, now time.Time) {
	if c.Generation != p.config.Generation {
		p.changed, p.limit, p.holders, p.full = now, 0, 0, time.Time{}
		p.measured, p.exceeded, p.lately, p.worst, p.unused = false, false, recent{}, Overshoot{}, unused{}
	}
	p.config = c
}

// Join makes h a member, from which reports are expected. A member stays as it is.
func (p *Pool) Join(h audit.Holder, now time.Time) {
	if p.members[h] == nil {
		p.members[h] = &member{joined: now}
	}
}

// Leave takes a member off, whether it stopped or vanished: the coordinator
// knows what it had in flight.
func (p *Pool) Leave(h audit.Holder) {
	if m := p.members[h]; m != nil {
		p.countLocal(m, -1)
		delete(p.members, h)
	}
	if len(p.members) == 0 {
		p.limit, p.holders = 0, 0 // no member reports them now
	}
}

// enter notes by how much what was in flight exceeded what may be.
func (p *Pool) enter(overshoot int64, now time.Time) {
	overshoot = max(0, overshoot)
	p.measured = true
	p.lately.see(overshoot, now)
	if overshoot > p.worst.Worst {
		p.worst = Overshoot{Worst: overshoot, WorstTime: now}
	}
	p.exceeded = p.exceeded || overshoot > 0 && !p.unbounded(now)
}

func (p *Pool) unbounded(now time.Time) bool {
	lately := func(at time.Time) bool { return !at.IsZero() && now.Sub(at) < localFor }
	return !p.config.Bounded || lately(p.local) || lately(p.sparing)
}

// Advance takes the samples that are due.
func (p *Pool) Advance(now time.Time) {
	if now.Sub(p.sampled) < p.interval {
		return
	}
	p.sampled = now
	p.spare(now)
	refusing, used := false, int64(0)
	for _, m := range p.members {
		slots := max(0, m.report.InFlight-m.report.Spared)
		if m.refused > 0 {
			refusing, slots = true, max(slots, m.report.Peak-m.report.Spared)
		}
		used += slots
		m.refused = 0
	}
	if p.limit > 0 && p.measured {
		p.unused.sample(refusing, max(0, p.limit-used)*audit.BasisPoints/p.limit, now)
	}
}

// spare enters what passed without a slot. A holder that let requests pass had them in
// flight at its peak.
func (p *Pool) spare(now time.Time) {
	inFlight := int64(0)
	p.spared = 0
	for _, m := range p.members {
		p.spared += m.report.Spared
		if m.report.Spared > 0 {
			inFlight += m.report.Peak
		} else {
			inFlight += m.report.InFlight
		}
	}
	if p.spared == 0 {
		return
	}
	p.sparing = now
	if p.limit > 0 && p.measured {
		p.enter(inFlight-p.limit, now)
	}
}
