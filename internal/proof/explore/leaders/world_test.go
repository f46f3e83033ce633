package leaders_test

import (
	"fmt"
	"slices"
	"time"

	"github.com/weir-dev/weir/internal/controlplane/leadership"
	"github.com/weir-dev/weir/internal/proof/explore"
	"github.com/weir-dev/weir/pkg/limiter"
	"github.com/weir-dev/weir/pkg/store"
	storememory "github.com/weir-dev/weir/pkg/store/memory"
	"github.com/weir-dev/weir/pkg/twotier/account"
)

// A succession is a model: processes that lead one after the other, each on a node with a
// clock of its own, and holders of one key. Each process leads once: one that lost the
// lock ends.
type succession struct {
	offsets [][]int64 // by how many ticks each node's clock is off, one list a beginning
	ticks   int64     // of true time
	window  int64     // ticks of a window
	limit   int64     // units of a window
	batch   int64     // units that a lease asks for
	holders int

	sets    int64 // how often a node's clock may be set
	setBy   int64 // to how many ticks from true time
	crashes int   // processes that end without handing over, at most
	orderly bool  // processes may end in order
	late    bool  // writes of the Lease and their answers take any time
	lost    int   // writes that do not arrive, or are not answered, at most
	deleted bool  // somebody may delete the Lease, once
	unseen  bool  // processes that stand by see the Lease only when they try to lead
	again   int   // windows that may be served twice, at most

	rules rules
	spare int64 // by how much the bound is lowered, to refute that it could be
	bound int
}

const (
	tick = limiter.MinWindow / 2
	hold = 2 // ticks that a renewal counts from when it was sent
	wait = 3 // ticks that others wait from when they saw the Lease change
)

// span is how long a renewal counts.
const span = time.Duration(hold*tick) * time.Microsecond

// epoch is when true time begins.
const epoch = limiter.Instant(1000 * 3600 * limiter.Second)

// rules are the production code, which a test may weaken.
type rules struct {
	note   func(leadership.Note) leadership.Note // that is written
	past   func(leadership.Note, limiter.Micros) leadership.Past
	start  func(wall, floor limiter.Instant) limiter.Instant
	covers func(r leadership.Renewal, at limiter.Instant, sinceBoot, hold time.Duration) bool
	missed func(leadership.Past, limiter.Micros) leadership.Past // when there is no Lease
	begin  func(memory) memory                                   // of a term
	pause  func(store.Reading) store.Reading
	floor  func(r store.Reading, sent int64) limiter.Instant // that a holder passes on
	// revives has a leader that did not renew in time create the Lease when it is gone.
	revives bool
	// byAnswer has a renewal count from when it was answered.
	byAnswer bool
}

func production() rules {
	return rules{
		note:   func(n leadership.Note) leadership.Note { return n },
		past:   leadership.Note.Past,
		start:  storememory.StartOf,
		covers: leadership.Renewal.Covers,
		missed: leadership.Past.WithoutLease,
		begin:  func(m memory) memory { return m },
		pause:  store.Reading.Pause,
		floor:  store.Reading.At,
	}
}

// A world is a state of it.
type world struct {
	tick      int64 // true time
	lease     lease
	terms     int       // that began
	left      *legacy   // by the last term; nil when it did not stop in order
	processes []process // shared with other worlds: changed through own
	holders   []holder
	admitted  [16]int64 // of each window from first on
	sets      int64
	crashes   int
	lost      int
	deleted   bool
}

// A lease is the Lease as the API server has it.
type lease struct {
	version int // 0: there is none
	holder  int // nobody: it was released
	note    leadership.Note
}

const nobody = -1

// A legacy is what a term that stopped in order leaves to the next.
type legacy struct {
	stopped limiter.Instant
	memory
}

// A memory is what the store of a term knows of the key.
type memory struct {
	known limiter.Memory
	state limiter.State
}

// role is how far a process has come.
type role uint8

const (
	standing role = iota // by
	holding              // the lock, and its term did not begin yet
	leading
	sealed // nothing is served any more, the lock is to be released
	gone
)

// A process is a controller.
type process struct {
	role     role
	offset   int64 // of its node's clock
	past     leadership.Past
	observed int   // version of the Lease that it saw last
	since    int64 // when it did
	at       int64 // when its clock started; 0 when it has none
	clock    limiter.Instant
	renewal  *leadership.Renewal // nil: it does not hold the lock
	sent     *write
	term     int
	memory
}

// A write of the Lease is under way.
type write struct {
	lease
	replaces int // version
	renewal  leadership.Renewal
	arrived  bool
	accepted bool
}

// A holder is a sidecar.
type holder struct {
	hand  account.Balance
	clock store.Reading
	term  int // of the leader that it follows
}

func (s *succession) params() limiter.Params {
	return limiter.Params{Generation: 1, Rates: []limiter.Rate{{Limit: s.limit, Window: limiter.Micros(s.window) * tick}}}
}

func (s *succession) model() explore.Model[world, action] {
	return explore.Model[world, action]{Init: s.init(), Next: s.next, Encode: s.encode, Check: s.check, Bound: max(s.bound, 400_000)}
}

func (s *succession) init() []world {
	var all []world
	for _, offsets := range s.offsets {
		w := world{holders: make([]holder, s.holders)}
		for _, offset := range offsets {
			w.processes = append(w.processes, process{offset: offset, past: leadership.Past{Overlap: hold * tick}})
		}
		all = append(all, w)
	}
	return all
}

// check has no window admit more than its limit, but for those that may be served twice.
func (s *succession) check(w world) error {
	twice := 0
	for i, n := range w.admitted {
		if n <= s.limit-s.spare {
			continue
		}
		if twice++; twice > s.again || n > 2*s.limit {
			return fmt.Errorf("%d admitted of window %d, whose limit is %d", n, i, s.limit)
		}
	}
	return nil
}

// tight returns the model whose bound is lower by the least, to refute that it holds.
func (s *succession) tight() *succession {
	t := *s
	if t.again > 0 {
		t.again--
	} else {
		t.spare = 1
	}
	return &t
}

// own returns a process that may be changed without changing another world.
func (w *world) own(i int) *process {
	w.processes = slices.Clone(w.processes)
	return &w.processes[i]
}

// holder returns one that may be changed.
func (w *world) holder(n int) *holder {
	w.holders = slices.Clone(w.holders)
	return &w.holders[n]
}

// wall is what the clock of the process's node shows.
func (w *world) wall(p *process) limiter.Instant {
	return epoch.Add(limiter.Micros(w.tick+p.offset) * tick)
}

// now is what the process's clock shows.
func (w *world) now(p *process) limiter.Instant {
	return p.clock.Add(limiter.Micros(w.tick-p.at) * tick)
}

// boot is the time since a node started, on all of them.
func (w *world) boot() time.Duration {
	return time.Duration(w.tick) * time.Duration(tick) * time.Microsecond
}

// mono is what a holder's clock shows.
func (w *world) mono() int64 { return int64(w.boot()) }
