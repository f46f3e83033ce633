package explore_test

import (
	"fmt"
	"iter"
	"slices"

	"github.com/weir-dev/weir/internal/proof/explore"
	"github.com/weir-dev/weir/pkg/limiter"
	"github.com/weir-dev/weir/pkg/store"
	"github.com/weir-dev/weir/pkg/twotier/account"
)

// A fleet is a model: holders of one key in front of one store, and what may
// happen between them. Only what it switches on happens.
type fleet struct {
	holders  int
	policies []limiter.Params // the first is in force; each holder hears of the next ones in order
	costs    []int64          // of requests
	batch    int64            // units a lease asks for
	lowWater int64            // credits at which the next lease is asked for ahead of need
	tick     limiter.Micros

	whole   bool // a lease is granted whole or not at all
	carry   bool // credits outlive their windows
	guided  bool // holders say when they lease for the first time in a window
	late    bool // requests and replies take any time; otherwise a lease is one step
	lost    bool // and may get lost
	returns bool // holders may give back what they have in hand
	cancels bool // requests may be cancelled after they were admitted

	tenants []tenant // the holders', when the limit is split over tenants

	restarts int64 // how often the store may forget everything
	stepBack int64 // by how many ticks the store's clock may fall behind in all
	jumps    int64 // how many ticks the store's clock may run ahead before it is set right
	right    bool  // the clock that stepped back may be set right at once
	floors   bool  // holders say what they know of the store's clock and of its memories
	expires  bool  // the store drops states that it need not keep
	moves    bool  // another store takes over

	rules  rules
	audit  auditor
	spare  int64 // units by which the bound is lowered, to refute that it could be
	loose  bool  // only what is admitted is checked, not what it is charged to or left in hand
	alike  bool  // holders are alike, so worlds that differ by their order are one
	bound  int   // of the search
	oldest limiter.Micros
}

// rules are the production code, which a test may weaken.
type rules struct {
	step      func(limiter.Params, limiter.State, limiter.Instant, limiter.Command) (limiter.State, limiter.Result)
	keepFor   func(limiter.State, limiter.Instant) limiter.Micros
	grantOf   func(sent, received int64, res limiter.Result) account.Grant
	spend     func(h account.Balance, now, cost int64) (account.Balance, account.Charge, bool)
	receive   func(h account.Balance, now int64, grant account.Grant, carryOver bool) (next account.Balance, lost account.Grant)
	refund    func(h account.Balance, c account.Charge, cost int64) (account.Balance, bool)
	carry     func(h account.Balance, now, most int64, into account.Grant) account.Balance
	floor     func(r store.Reading, sent int64) limiter.Instant
	looked    func(r store.Reading, now limiter.Instant, at int64) store.Reading
	forgot    func(r store.Recollection, begun limiter.Instant) limiter.Instant
	unnoted   bool // a store that drops a key does not note when
	byArrival bool // grantOf uses received
	hasty     bool // a phase of a move begins before every holder heard of the last one
}

func production() rules {
	return rules{
		step:    limiter.Params.Step,
		keepFor: limiter.State.KeepFor,
		grantOf: func(sent, _ int64, res limiter.Result) account.Grant { return account.GrantOf(sent, res) },
		spend:   account.Balance.Spend,
		receive: account.Balance.Receive,
		refund:  account.Balance.Refund,
		carry:   account.Balance.CarryOver,
		floor:   store.Reading.At,
		looked:  func(r store.Reading, now limiter.Instant, at int64) store.Reading { return r.Looked(now, at, at) },
		forgot:  store.Recollection.Forgot,
	}
}

// epoch is when a fleet begins: a multiple of every window.
const epoch = limiter.Instant(1000 * 3600 * limiter.Second)

// A world is a state of a fleet.
type world struct {
	tick    int64 // true time
	behind  int64 // ticks by which the clock of the store is behind, less than 0 while it is ahead
	stores  [2]memory
	move    phase // of the move to the second store
	since   limiter.Instant
	holders []holder // shared with other worlds: changed through own
	audit   auditor
	unlucky int64 // restarts up to now
	broken  error
}

// A memory is what a store knows.
type memory struct {
	state  limiter.State
	memory limiter.Memory
}

// A holder is one process.
type holder struct {
	hand   account.Balance
	policy int                // the newest it heard of
	move   phase              // as far as it heard
	call   *call              // its one outstanding lease
	back   *call              // a return under way
	stray  *call              // a lease it no longer waits for, which the store may still grant
	last   *admitted          // what may be cancelled
	clock  store.Reading      // what it knows of the store's clock
	known  store.Recollection // and of its memories
	window int64              // in which it leased last
	got    int64              // what it was granted in it, returns taken off
}

// A tenant is a party that a holder leases for.
type tenant struct {
	name     string
	promised int64 // of each window, whatever the others ask for
}

// A call is a command under way.
type call struct {
	holder  int
	store   int
	policy  int // it was sent under
	command limiter.Command
	sent    int64           // by the holder's clock
	reply   *limiter.Result // nil while the store has not decided
	known   store.Recollection
	begun   limiter.Instant // start of the memory that decided
}

// admitted is a request that was let through.
type admitted struct {
	cost   int64
	charge account.Charge
}

// phase is how far a move to another store has come.
type phase uint8

const (
	staying  phase = iota
	draining       // nobody asks the old store any more
	moved
)

// An action is what happened.
type action struct {
	verb   string
	holder int // nobody when it is not a holder's
	amount int64
}

const nobody = -1

func (a action) String() string {
	s := a.verb
	if a.holder != nobody {
		s = fmt.Sprintf("holder %d %s", a.holder, a.verb)
	}
	if a.amount != 0 {
		s += fmt.Sprintf(" %d", a.amount)
	}
	return s
}

// own returns a holder that may be changed without changing another world.
func (w *world) own(n int) *holder {
	w.holders = slices.Clone(w.holders)
	return &w.holders[n]
}

// now is what the store's clock reads.
func (f *fleet) now(w *world) limiter.Instant {
	return epoch.Add(limiter.Micros(w.tick-w.behind) * f.tick)
}

// mono is what the clock of a holder reads, which starts anywhere.
func (f *fleet) mono(w *world, n int) int64 {
	return w.tick*int64(f.tick)*1000 + int64(n)*7_777_777_777
}

// model returns the state machine to search.
func (f *fleet) model() explore.Model[world, action] {
	f.oldest = f.horizon()
	return explore.Model[world, action]{
		Init:   []world{f.init()},
		Next:   f.next,
		Encode: f.encode,
		Check:  f.check,
		Bound:  f.bound,
	}
}

// init returns the world in which a fleet begins. Holders that know of clocks have asked
// the store before.
func (f *fleet) init() world {
	w := world{audit: f.audit, holders: make([]holder, f.holders)}
	if f.floors {
		w.stores[0].memory.Since = epoch
		for n := range w.holders {
			w.holders[n].clock = store.Reading{}.Observe(epoch, f.mono(&w, n))
			w.holders[n].known = store.Recollection{Since: epoch, Shown: epoch}
		}
	}
	return w
}

// An emitter takes one thing that can happen and the world after it.
type emitter func(action, world)

// next yields all that can happen.
func (f *fleet) next(w world) iter.Seq2[action, world] {
	return func(yield func(action, world) bool) {
		open := true
		emit := func(a action, v world) { open = open && yield(a, v) }
		for n := range f.holders {
			for _, cost := range f.costs {
				f.request(w, n, cost, emit)
			}
			f.askAhead(w, n, emit)
			f.cancel(w, n, emit)
			f.giveBack(w, n, emit)
			f.deliver(w, n, emit)
			f.hear(w, n, emit)
		}
		f.surround(w, emit)
		f.takeOver(w, emit)
	}
}
