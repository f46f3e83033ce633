package main

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/weir-dev/weir/api/v1alpha1"
)

// A result is what a run comes to.
type result struct {
	windows, arrivals int
	over              int // windows that admitted more than they may
	lies              int // of the status
	excused           int // windows that admitted more where docs/guarantees.md promises nothing
}

func (r result) String() string {
	return fmt.Sprintf("%d windows judged by %d arrivals, %d over their bound (%d more where none is promised), %d false figures",
		r.windows, r.arrivals, r.over, r.excused, r.lies)
}

// judge holds what the applications received against the limits, and what the status
// says of it against the truth.
func (w *world) judge() (result, error) {
	var all result
	var errs []error
	if w.federated {
		found, err := w.judgeBudget()
		all, errs = found, append(errs, err)
	}
	for _, s := range w.shops {
		if s.drawn {
			continue
		}
		eras := s.eras()
		var worst overshoot
		excused := 0
		for _, team := range teams {
			j := judgement{window: s.window, eras: eras, stale: s.stale(), guessed: s.guessed(), limit: func(id windowID) int64 { return s.mayAdmit(eras, id) }}
			v := j.of(s.limited(team))
			w.say("%s, team %s: %s", s.name, team, v)
			all.windows, all.arrivals = all.windows+v.windows, all.arrivals+v.arrivals
			worst = worst.with(s, v, eras)
			excused += s.excused(v, eras)
			if v.over > 0 {
				all.over += len(v.full)
				errs = append(errs, fmt.Errorf("%s: %d requests of team %s were admitted beyond the limit of the windows %s", s.name, v.over, team, s.windows(v, eras)))
			}
		}
		if s.once > 0 {
			for _, team := range teams {
				used := s.limited(team)
				if len(used) == 0 {
					continue
				}
				w.say("%s: %d of %d used by team %s, the last %s ago", s.name, len(used), s.once, team, time.Since(used[len(used)-1].reached).Round(time.Second))
			}
		}
		c := s.newest()
		w.say("%s: status says %s, worst %s, bound %d; it was %d to %d", s.name, c.within, c.worstText(), c.bound, worst.least, worst.most)
		lies := s.lies(worst, excused > 0)
		all.lies, all.excused = all.lies+len(lies), all.excused+excused
		errs = append(errs, lies...)
	}
	return all, errors.Join(errs...)
}

// excused returns how many windows surely admitted more than the limit, and were not
// protected from that.
func (s *shop) excused(v verdict, eras []era) (n int) {
	for i, admitted := range v.least {
		from, until := s.realTime(eras, i)
		_, most := s.limitsIn(from, until)
		if s.action == v1alpha1.DenyAction && admitted > most && s.isUnprotected(i, from, until) {
			n++
		}
	}
	return n
}

// An overshoot is between both.
type overshoot struct{ least, most int64 }

// with returns the worst of o and of a team's windows.
func (o overshoot) with(s *shop, v verdict, eras []era) overshoot {
	for i := range v.most {
		from, until := s.realTime(eras, i)
		lower, upper := s.limitsIn(from, until)
		o.most = max(o.most, v.most[i]-lower)
		if time.Since(until) > statusTime {
			o.least = max(o.least, v.least[i]-upper)
		}
	}
	return o
}

// lies returns what the status says that is not so. It may say that a window was beyond
// its bound only where none is promised.
func (s *shop) lies(worst overshoot, excused bool) (errs []error) {
	c := s.newest()
	if c.worst > worst.most {
		errs = append(errs, fmt.Errorf("%s: status says that a window was exceeded by %d, and it cannot have been by more than %d", s.name, c.worst, worst.most))
	}
	if known := !strings.HasPrefix(c.within, "Unknown"); known && !c.atLeast && len(s.limits) == 1 && c.worst < worst.least {
		errs = append(errs, fmt.Errorf("%s: status says %s, the worst window was exceeded by %d, and it was by %d at least", s.name, c.within, c.worst, worst.least))
	}
	if excused {
		return errs
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if i := slices.IndexFunc(s.claims, func(c claim) bool { return strings.HasPrefix(c.within, "False") }); i >= 0 {
		errs = append(errs, fmt.Errorf("%s: status said %s at %s: %s", s.name, s.claims[i].within, s.claims[i].from.Format("15:04:05.0"), s.claims[i].message))
	}
	return errs
}

// windows names the windows of a verdict that are too full.
func (s *shop) windows(v verdict, eras []era) string {
	var named []string
	for _, i := range v.full {
		from, _ := s.realTime(eras, i)
		named = append(named, fmt.Sprintf("%d of %s (from %s: %d to %d of %d)", i.index, s.stores[i.store].name, from.Format("15:04:05.0"), v.least[i], v.most[i], s.mayAdmit(eras, i)))
	}
	return strings.Join(named, ", ")
}

// mayAdmit returns the most that a window may admit of one team.
func (s *shop) mayAdmit(eras []era, id windowID) int64 {
	from, until := s.realTime(eras, id)
	_, most := s.limitsIn(from, until)
	switch {
	case s.action == v1alpha1.AllowAction:
		return math.MaxInt64 / 2
	case s.action == v1alpha1.LocalShareAction:
		// A store that serves some sidecars and not others, and sidecars that the
		// controller does not hear of either: each of n has a part of n.
		if bound, known := s.claimed(from, until.Add(statusTime)); known {
			return most + min(bound, most)
		}
		return 2 * most
	case s.onLoss == v1alpha1.ResumeOnMemoryLoss:
		losses, _ := s.stores[id.store].lostIn(from, until)
		return most * (1 + losses)
	case s.isUnprotected(id, from, until):
		return 2 * most
	default:
		return most
	}
}

// isUnprotected reports whether a window of that span has no promise to admit no more than
// its limit. Each of two primaries of a Redis may serve it, and a Redis that lost its memory
// while its clock was set back may serve it once more to a sidecar that never asked it
// before.
func (s *shop) isUnprotected(id windowID, from, until time.Time) bool {
	_, losses := s.stores[id.store].lostIn(from, until)
	return losses > 0 && s.restartedIn(from, until)
}

// statusTime is how long the status may take to follow what happens.
const statusTime = 30 * time.Second

// claimed returns how much more than the limit a window may have admitted by what the
// status claimed in a span of time, and whether it claimed to know all of that time. It
// shows the bound of the last window alone; of those before it says that each was within
// its own, and by how much the worst of them was beyond the limit.
func (s *shop) claimed(from, until time.Time) (bound int64, known bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for i, c := range s.claims {
		ends := time.Now()
		if i+1 < len(s.claims) {
			ends = s.claims[i+1].from
		}
		if c.from.After(until) || ends.Before(from) {
			continue
		}
		if c.bound < 0 || strings.HasPrefix(c.within, "Unknown") {
			return 0, false
		}
		bound, known = max(bound, c.bound, c.worst), true
	}
	return bound, known
}

// stale is judgement.stale: as long as the outages of a store that follow one another.
func (s *shop) stale() time.Duration {
	if s.action == v1alpha1.LocalShareAction {
		return 20 * time.Second
	}
	return 0
}

// guessed is judgement.guessed: half of a round trip to a store that is delayed, on a busy
// machine.
func (s *shop) guessed() time.Duration {
	if s.action == v1alpha1.AllowAction {
		return 300 * time.Millisecond
	}
	return 0
}

// realTime returns a span of the machine's time that holds all in which a store's clock
// showed a window.
func (s *shop) realTime(eras []era, id windowID) (from, until time.Time) {
	begins := time.UnixMicro(id.index * s.window.Microseconds())
	for _, e := range eras {
		if e.store != id.store {
			continue
		}
		off := e.shows(e.from).Sub(e.from)
		a, b := begins.Add(-off-slack), begins.Add(s.window-off+slack)
		if b.Before(e.from) || a.After(e.until.Add(s.window+s.stale())) {
			continue
		}
		if from.IsZero() || a.Before(from) {
			from = a
		}
		if b.After(until) {
			until = b
		}
	}
	return from, until
}
