package rates_test

import (
	"fmt"
	"slices"

	"github.com/weir-dev/weir/internal/proof/explore"
	"github.com/weir-dev/weir/pkg/federation/escrow"
	"github.com/weir-dev/weir/pkg/federation/ledger"
	"github.com/weir-dev/weir/pkg/limiter"
)

// The rates of a budget: many short windows are one long one.
const (
	short = iota
	long
	both
)

var names = [both]string{"short", "long"}

// A system is a model of a budget with two rates, each a ledger of its own in the hub and an escrow of its
// own in every member.
type system struct {
	limits  [][both]int64 // an edit is a step to the next
	members int
	shorts  int64 // short windows in a long one
	ticks   int64 // in a short window: how finely the clock is read
	longs   int64 // long windows that pass
	leases  int   // of a member of each rate, at most
	want    int64 // what a member leases, and a process draws, at most
	hands   int   // processes of a member, up to maxHands
	block   int64 // 0: the hub is never lost
	crashes int
	slips   int // draws during which time passes
	losses  int // answers of the hub that do not arrive
	offset  limiter.Micros

	rules rules
	spare [both]int64
}

// A world is a state of it.
type world struct {
	now      int64 // ticks
	edits    int
	memories []memory
	records  [both]record
	members  []member
	slips    int
	losses   int
	admitted [both][]int64 // of each window that the hub's clock showed
	most     [both][]int64 // the largest limit that was in force in it, 0 before it began
}

// A memory is a hub in its own mind. It takes over the record of a rate with the first command.
type memory struct {
	term   int64
	begun  [both]bool
	states [both]ledger.State
	saved  [both]int // version of the record
}

// A record is what is durable of a rate.
type record struct {
	state   ledger.State
	version int
}

type member struct {
	escrows [both]escrow.State
	leases  [both]int
	used    [both]use
	hands   [maxHands]holding // of its processes
}

const maxHands = 2

// A use is what was handed on of a window and not given back.
type use struct{ index, units int64 }

// A holding is what a process has of a draw.
type holding struct {
	units   int64
	windows limiter.Windows
	until   int64 // tick from which on it may not spend it
}

func (c *system) model() explore.Model[world, string] {
	w := world{memories: []memory{{term: 1, begun: [both]bool{true, true}}}, members: make([]member, c.members)}
	for i := range both {
		w.admitted[i] = make([]int64, c.windows(i))
		w.most[i] = make([]int64, c.windows(i))
		w.most[i][0] = c.limits[0][i]
	}
	return explore.Model[world, string]{Init: []world{w}, Next: c.next, Encode: c.encode, Check: c.check, Bound: 300_000}
}

// check holds each rate by itself: no window admits more than its limit, and what was handed on is charged
// to the window, and nothing else is.
func (c *system) check(w world) error {
	for i := range both {
		for index, n := range w.admitted[i] {
			if most := w.most[i][index]; most > 0 && n > most-c.spare[i] {
				return fmt.Errorf("%d admitted in %s window %d of %d", n, names[i], index, most)
			}
		}
		for n := range w.members {
			m := &w.members[n]
			_, r := m.escrows[i].Step(c.local(w.now, n), escrow.Command{Op: escrow.Peek})
			if used := m.used[i].of(r.Epoch.Index); r.Epoch.Index > 0 && r.Taken != used {
				return fmt.Errorf("%d are charged to the %s window of member %d, and %d handed on", r.Taken, names[i], n, used)
			}
		}
	}
	return nil
}

func (u use) of(index int64) int64 {
	if u.index != index {
		return 0
	}
	return u.units
}

// copied returns a world that may be written to.
func (w world) copied() world {
	w.memories, w.members = slices.Clone(w.memories), slices.Clone(w.members)
	for i := range both {
		w.admitted[i], w.most[i] = slices.Clone(w.admitted[i]), slices.Clone(w.most[i])
	}
	return w
}

// length returns that of the windows of a rate, in ticks.
func (c *system) length(i int) int64 {
	if i == long {
		return c.ticks * c.shorts
	}
	return c.ticks
}

// windows returns how many windows of a rate pass.
func (c *system) windows(i int) int64 { return c.longs * c.shorts * c.ticks / c.length(i) }

func (c *system) tick() limiter.Micros { return limiter.MinWindow }

// instant is what the hub's clock shows, which began in long window 10.
func (c *system) instant(now int64) limiter.Instant {
	return limiter.Instant((10*c.length(long) + now) * int64(c.tick()))
}

// local is what the clock of a member shows.
func (c *system) local(now int64, n int) limiter.Instant {
	return c.instant(now).Add(c.offset * limiter.Micros(1-2*(n%2)))
}

func (c *system) rate(edits, i int) limiter.Rate {
	return limiter.Rate{Limit: c.limits[edits][i], Window: limiter.Micros(c.length(i)) * c.tick()}
}

// params are those of the ledger of a rate.
func (c *system) params(edits, i int) ledger.Params {
	r := c.rate(edits, i)
	p := ledger.Params{Limit: r.Limit, Window: r.Window, Strategy: ledger.FirstCome, Block: c.block}
	for n := range c.members {
		p.Members = append(p.Members, ledger.Member{Name: name(n), Weight: 1, Borrowing: -1})
	}
	return p
}

func name(n int) string { return string(rune('a' + n)) }
