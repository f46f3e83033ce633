package main

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/weir-dev/weir/api/v1alpha1"
	"github.com/weir-dev/weir/internal/testing/devcluster/clock"
	"github.com/weir-dev/weir/internal/testing/devcluster/disk"
	"github.com/weir-dev/weir/internal/testing/devcluster/link"
	"github.com/weir-dev/weir/internal/testing/devcluster/servers"
)

// A store is a server with a clock of its own, behind a link that can be cut. The
// controller's own store has neither: its clock is asked for.
type store struct {
	server
	number int            // among all
	api    v1alpha1.Store // as policies name it
	link   *link.Link
	group  *group // of servers that fail over by themselves; nil for others
	clock  *clock.Clock
	disk   *disk.Disk
	asked  *askedClock // of the controller's
	forgot atomic.Bool // what the counters of long windows do not outlive
	turn   sync.Mutex  // of faults of its servers

	mu      sync.Mutex      // guards the rest
	running *servers.Server // what serves
	copy    *servers.Server // its replica, nil when it has none
	hit     *member         // of a group, that a fault happened to
	rises   func()          // what the fault of a group's server ends with
	losses  []loss
}

// A loss is an instant at which a store may have lost its last grants, or all it knew.
type loss struct {
	at  time.Time
	all bool
}

// eras returns how the store's clock ran.
func (s *store) eras() []era {
	if s.asked != nil {
		return s.asked.eras()
	}
	return erasOf(s.clock.Eras())
}

// erasOf returns how a clock ran.
func erasOf(known []clock.Era) (all []era) {
	for i, e := range known {
		until := time.Now().Add(time.Hour)
		if i+1 < len(known) {
			until = known[i+1].From
		}
		all = append(all, era{from: e.From, until: until, shows: e.At})
	}
	return all
}

// noticeTime is how long the controller may take to notice that a store's clock was set
// back: it looks about every 15 s, and not while it or the store is away. Up to then the clock
// may have gone on, for all it knows.
const noticeTime = 60 * time.Second

// catchesUp returns when the clock shows the newest instant that it may have shown.
func (s *store) catchesUp() time.Time {
	if s.asked != nil {
		return time.Time{} // it never goes back
	}
	return caughtUp(s.clock.Eras())
}

// caughtUp returns when a clock shows the newest instant that it showed in its eras, or would
// have shown when it was noticed that it was set back.
func caughtUp(eras []clock.Era) time.Time {
	last := eras[len(eras)-1]
	newest := last.From
	for i, e := range eras[:len(eras)-1] {
		ended := eras[i+1].From
		if eras[i+1].At(ended).Before(e.At(ended)) {
			ended = ended.Add(noticeTime)
		}
		newest = later(newest, ended.Add(e.At(ended).Sub(last.At(ended))))
	}
	return newest
}

// lostIn returns how often the server may have lost its last grants in a span of time, or
// so soon after it that its grants of the span were not kept yet. It also returns how often
// it may have lost all.
func (s *store) lostIn(from, until time.Time) (some, all int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, l := range s.losses {
		if l.at.Before(from) || l.at.After(until.Add(keptAfter)) {
			continue
		}
		some++
		if l.all {
			all++
		}
	}
	return some, all
}

// keptAfter is how long a Redis that writes every second may take to do so.
const keptAfter = 2 * time.Second

func (s *store) close() {
	if s.clock == nil {
		return
	}
	defer s.clock.Close()
	if s.group != nil {
		s.group.close()
		return
	}
	s.running.Kill()
	if s.copy != nil {
		s.copy.Kill()
	}
	s.link.Close()
}
