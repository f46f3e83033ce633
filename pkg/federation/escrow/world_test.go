package escrow_test

import (
	"fmt"
	"math/rand/v2"

	"github.com/weir-dev/weir/internal/testing/escrowtest"
	"github.com/weir-dev/weir/pkg/federation/escrow"
	"github.com/weir-dev/weir/pkg/federation/ledger"
	"github.com/weir-dev/weir/pkg/limiter"
)

// A world is one budget: its coordinator, a few regions with an escrow each, their
// processes, and what is on the way between them. True time passes; the clocks of the
// coordinator and of the escrows are off by any amount. Messages arrive late, out of
// order, more than once or never; only what a process sends to its escrow does not
// come twice.
type world struct {
	rules
	dice    *rand.Rand
	now     limiter.Instant
	offset  limiter.Micros // of the coordinator's clock
	hub     *escrowtest.Coordinator
	slice   int64 // of each member, from now on
	edits   bool  // it changes
	regions []*region
	born    int // names so far

	toEscrow  []request
	toProcess []reply
	toHub     []inquiry
	fromHub   []answer

	taken    map[int64]int64 // of each window, by all
	happened map[string]int
}

// Rules are what an escrow or its processes do not heed.
type rules struct {
	slow     bool // what an answer took on its way is not counted
	eternal  bool // the escrow does not know when its memory began
	mixed    bool // answers are brought that another escrow asked for
	eager    bool // windows are opened with what was granted, whatever the escrow was
	twice    bool // what is given back to an escrow comes twice
	namesake bool // names are used again
	frail    bool // its memory is lost often
}

const (
	limit  = 40
	most   = 13 // that a member may use without asking
	window = 100 * limiter.Millisecond
)

type region struct {
	name   string
	state  escrow.State
	offset limiter.Micros // of the escrow's clock
	since  limiter.Instant
	heard  *heard // the last grant, of whichever process
	held   []held
}

// heard is what a process knows of the coordinator's windows.
type heard struct {
	grant          ledger.Grant
	sent, received limiter.Instant
}

// held is what a process took and did not spend yet.
type held struct{ index, units int64 }

type request struct {
	*region
	escrow.Command
	again bool // it was sent before
}

type reply struct {
	*region
	escrow.Command
	escrow.Result
}

type inquiry struct {
	*region
	ledger.Command
	asked    escrow.Result
	received limiter.Instant // the escrow's answer
	sent     limiter.Instant
}

type answer struct {
	inquiry
	ledger.Grant
}

func newWorld(seed uint64, r rules) *world {
	w := &world{
		rules: r, dice: rand.New(rand.NewPCG(seed, 1)), now: 1 << 50,
		taken: map[int64]int64{}, happened: map[string]int{},
	}
	w.hub = escrowtest.NewCoordinator(limit, window, 3)
	w.offset, w.edits, w.slice = w.skew(), w.one(2), most*w.dice.Int64N(2)
	w.hub.Slice(w.slice)
	for i := range 3 {
		w.regions = append(w.regions, &region{name: escrowtest.Member(i), offset: w.skew()})
		w.regions[i].since = w.now.Add(w.regions[i].offset)
	}
	return w
}

func (w *world) skew() limiter.Micros { return limiter.Micros(w.dice.Int64N(1<<30) - 1<<29) }

func (w *world) one(n int) bool { return w.dice.IntN(n) == 0 }

// step lets one thing happen.
func (w *world) step() error {
	r := w.regions[w.dice.IntN(len(w.regions))]
	w.now = w.now.Add(limiter.Micros(w.dice.Int64N(int64(window) / 400)))
	switch n := w.dice.IntN(64); {
	case n < 8:
		w.send(r, escrow.Command{Op: escrow.Take, Min: 1 + w.dice.Int64N(2), Want: 2 + w.dice.Int64N(10)})
	case n < 12:
		w.send(r, escrow.Command{Op: escrow.Ask, Holder: w.name(r)})
	case n < 13:
		w.seldom(r)
	case n < 14:
		w.giveBack(r)
	case n < 36:
		return w.serve()
	case n < 48:
		w.receive()
	case n < 55:
		w.ask()
	default:
		w.fill()
	}
	return nil
}

// seldom lets one of the things happen that rarely do.
func (w *world) seldom(r *region) {
	if w.frail && w.one(4) {
		w.lose(r)
	}
	switch w.dice.IntN(40) {
	case 0:
		w.lose(r)
	case 1:
		w.hub.Forget()
		w.happened["the coordinator lost its memory"]++
	case 2, 10, 11:
		if w.edits {
			w.slice = most - w.slice
			w.hub.Slice(w.slice)
		}
	case 3:
		w.drop()
	case 4, 5, 6, 7, 8, 9:
		w.send(r, escrow.Command{Op: escrow.Release, Holder: w.name(r), Keep: w.dice.Int64N(4)})
	}
}

func (w *world) name(r *region) string {
	if w.namesake {
		return r.name
	}
	w.born++
	return fmt.Sprint("h", w.born)
}

func (w *world) send(r *region, c escrow.Command) {
	w.toEscrow = append(w.toEscrow, request{r, c, false})
}

// lose lets an escrow lose its memory. Messages to it are still on the way.
func (w *world) lose(r *region) {
	r.state = escrow.State{}
	r.offset = w.skew()
	r.since = w.now.Add(r.offset)
	w.happened["an escrow lost its memory"]++
}

func (w *world) drop() {
	if len(w.toHub) > 0 && w.one(2) {
		w.toHub = w.toHub[1:]
	}
	if len(w.fromHub) > 0 && w.one(2) {
		w.fromHub = w.fromHub[1:]
	}
	if len(w.toProcess) > 0 && w.one(2) {
		w.toProcess = w.toProcess[1:]
	}
}

func (w *world) giveBack(r *region) {
	if len(r.held) == 0 {
		return
	}
	h := draw(w, &r.held)
	if w.one(2) {
		return // it was spent
	}
	c := escrow.Command{Op: escrow.Return, Want: h.units, Epoch: ledger.Epoch{Index: h.index}}
	w.send(r, c)
	if w.twice {
		w.toEscrow = append(w.toEscrow, request{r, c, true})
	}
}

// draw takes something out of a list that is not empty, mostly of what came first.
func draw[T any](w *world, list *[]T) T {
	i := w.any(len(*list))
	v := (*list)[i]
	*list = append((*list)[:i], (*list)[i+1:]...)
	return v
}

func (w *world) any(n int) int {
	if !w.one(32) {
		n = min(n, 4)
	}
	return w.dice.IntN(n)
}
