package leaders_test

import (
	"errors"
	"fmt"
	"iter"
	"slices"
	"testing"
	"time"

	"github.com/weir-dev/weir/internal/controlplane/leadership"
	"github.com/weir-dev/weir/internal/proof/explore"
	"github.com/weir-dev/weir/pkg/limiter"
	storememory "github.com/weir-dev/weir/pkg/store/memory"
	"github.com/weir-dev/weir/pkg/twotier/account"
)

// A published model is GaleLeasedClock of one holder, limit and batch 1, two leaders, and
// windows of two ticks, by the production code. A renewal counts for a tick.
type published struct {
	own      bool // a successor starts at its node's clock
	endless  bool // a leader serves beyond what it leased
	unleased bool // the Lease says what the node's clock shows
	spare    int64
}

const (
	skew     = 2 // ticks by which a node's clock may be off
	leads    = 2 // leaders at most
	horizon  = 4 // ticks of true time, which begins at skew
	lasts    = tick
	lastsFor = time.Duration(tick) * time.Microsecond
)

var params = limiter.Params{Generation: 1, Rates: []limiter.Rate{{Limit: 1, Window: 2 * tick}}}

// A reign is a leader.
type reign struct {
	off     limiter.Instant // what its clock showed when true time was 0
	known   limiter.Memory
	renewal leadership.Renewal
	state   limiter.State
}

// A history is a state of the model.
type history struct {
	now      limiter.Micros
	reigns   []reign // shared with other histories
	note     leadership.Note
	at       limiter.Micros // when the Lease was written
	hand     account.Balance
	of       int // the leader that granted what is in hand
	admitted [16]int64
}

func (h *history) boot() time.Duration { return time.Duration(h.now) * time.Microsecond }

func (h *history) mono() int64 { return int64(h.boot()) }

func (h *history) clock(l int) limiter.Instant { return h.reigns[l].off.Add(h.now) }

// wall is what a node's clock shows when it is off by that many ticks.
func (h *history) wall(off int64) limiter.Instant {
	return epoch.Add(h.now + limiter.Micros(off)*tick)
}

func (p published) model() explore.Model[history, string] {
	var all []history
	for off := range around(skew) {
		h := history{now: skew * tick}
		h.begin(h.wall(off), limiter.Memory{}, limiter.State{})
		all = append(all, h)
	}
	return explore.Model[history, string]{Init: all, Next: p.next, Encode: p.encode, Check: p.check, Bound: 100_000}
}

// around yields the numbers from -n to n.
func around(n int64) iter.Seq[int64] {
	return func(yield func(int64) bool) {
		for i := -n; i <= n && yield(i); i++ {
		}
	}
}

// begin adds a leader whose clock starts at an instant.
func (h *history) begin(start limiter.Instant, known limiter.Memory, state limiter.State) {
	h.reigns = append(slices.Clip(h.reigns), reign{off: start.Add(-h.now), known: known, state: state})
	h.renew(start)
}

// renew has the last leader write the Lease, which says what its clock shows.
func (h *history) renew(says limiter.Instant) {
	last := len(h.reigns) - 1
	h.reigns = slices.Clone(h.reigns)
	h.reigns[last].renewal = leadership.Renewal{Sent: h.boot(), Clock: h.clock(last)}
	h.note, h.at = leadership.Note{Clock: says, Held: true}, h.now
}

func (p published) next(h history) iter.Seq2[string, history] {
	return func(yield func(string, history) bool) {
		open := true
		emit := func(what string, v history) { open = open && yield(what, v) }
		if h.now < (skew+horizon)*tick {
			v := h
			v.now += tick
			emit("a tick passes", v)
		}
		p.lead(h, emit)
		if hand, charge, ok := h.hand.Spend(h.mono(), 1); ok {
			v := h
			v.hand = hand
			v.admitted[index(charge.Windows.Open[0].Index)]++
			emit("the holder serves", v)
		}
		for l := range h.reigns {
			p.lease(h, l, emit)
		}
	}
}

// lead yields what the last leader and its successor may do.
func (p published) lead(h history, emit func(string, history)) {
	last := len(h.reigns) - 1
	for off := range around(skew) {
		if v := h; h.reigns[last].renewal.Sent != h.boot() {
			says := h.clock(last)
			if p.unleased {
				says = h.wall(off)
			}
			v.renew(says)
			emit("the leader renews", v)
		}
		if len(h.reigns) == leads {
			continue
		}
		if h.now > h.at+lasts {
			v := h
			start := p.start(h.wall(off), h.note)
			v.begin(start, limiter.Memory{Since: start + 1}, limiter.State{})
			emit(fmt.Sprint("another one follows, off by ", off), v)
		}
		if before := h.reigns[last]; before.renewal.Holds(h.boot(), lastsFor) {
			v := h
			v.reigns = slices.Clone(v.reigns)
			v.reigns[last].renewal.Sent = h.boot() - lastsFor // released
			v.begin(p.start(h.wall(off), leadership.Note{Clock: h.clock(last)}), before.known, before.state)
			emit(fmt.Sprint("it hands over to one that is off by ", off), v)
		}
	}
}

func (p published) start(wall limiter.Instant, n leadership.Note) limiter.Instant {
	if p.own {
		return wall
	}
	return storememory.StartOf(wall, n.Past(lasts).Served)
}

func (p published) lease(h history, l int, emit func(string, history)) {
	r, now := h.reigns[l], h.clock(l)
	if !p.endless && !r.renewal.Covers(now, h.boot(), lastsFor) || h.hand.Front.Held(h.mono()) > 0 {
		return
	}
	next, res := params.Step(r.state, now, limiter.Command{Op: limiter.Take, Min: 1, Want: 1, Memory: r.known})
	if res.Granted == 0 {
		return
	}
	h.reigns = slices.Clone(h.reigns)
	h.reigns[l].state = next
	h.hand, _ = h.hand.Receive(h.mono(), account.GrantOf(h.mono(), res), false)
	h.of = l
	emit(fmt.Sprint("the holder leases from leader ", l), h)
}

// index counts windows from the epoch.
func index(of int64) int64 { return of - params.Rates[0].WindowAt(epoch).Index }

// encode appends the variables of the module.
func (p published) encode(b []byte, h history) []byte {
	e := encoder{b: b}
	e.add(int64(h.now), int64(len(h.reigns)), int64(h.note.Clock), int64(h.at))
	for _, r := range h.reigns {
		e.add(int64(r.off), int64(r.known.Since), int64(r.renewal.Sent))
		e.add(int64(r.state.N))
		for _, m := range r.state.Slice() {
			e.add(m.Index, m.Used)
		}
	}
	e.add(h.hand.Front.Credits, int64(h.of), int64(h.hand.Front.Windows.N))
	for _, w := range h.hand.Front.Windows.Slice() {
		e.add(w.Index)
	}
	e.add(h.admitted[:]...)
	return e.b
}

// check is Overshoot and Covered of the module.
func (p published) check(h history) error {
	if n := slices.Max(h.admitted[:]); n > params.Rates[0].Limit-p.spare {
		return fmt.Errorf("%d admitted of a window", n)
	}
	last := len(h.reigns) - 1
	since := h.reigns[last].known.Since
	for l, r := range h.reigns[:last] {
		if p == (published{}) && r.renewal.Holds(h.boot(), lastsFor) && r.known.Since != since && h.clock(l) >= since {
			return errors.New("two leaders that do not share their counts serve an instant")
		}
	}
	return nil
}

// publishedModels are the configurations of the module, and what TLC and the search find.
var publishedModels = []struct {
	config string
	what   string
	of     published
	states int // 0 when the promise is broken
	steps  int // of the shortest history that breaks it
}{
	{"", "all rules", published{}, 11310, 0},
	{"-tight", "a bound that is lower by one", published{spare: 1}, 0, 2},
	{"-own", "a successor starts at its node's clock", published{own: true}, 0, 9},
	{"-endless", "a leader serves beyond what it leased", published{endless: true}, 0, 5},
	{"-unleased", "the Lease says what the node's clock shows", published{unleased: true}, 0, 11},
}

func TestPublishedStatesAreReached(t *testing.T) {
	for _, p := range publishedModels {
		t.Run(p.what, func(t *testing.T) {
			r, err := explore.Search(p.of.model(), nil)
			if err != nil {
				t.Fatal(err)
			}
			steps := 0
			if r.Counterexample != nil {
				r.States, steps = 0, len(r.Counterexample.Trace)
			}
			if r.States != p.states || steps != p.steps {
				t.Errorf("%d states and %d steps, want %d and %d:\n%v", r.States, steps, p.states, p.steps, r.Counterexample)
			}
		})
	}
}

// TestSpecsExpectWhatTheSearchFinds has TLC and the search agree.
func TestSpecsExpectWhatTheSearchFinds(t *testing.T) {
	for _, p := range publishedModels {
		want := fmt.Sprint(p.states, " states")
		switch {
		case p.of.spare > 0:
			want = "OvershootTight violated"
		case p.states == 0:
			want = "Overshoot violated"
		}
		config := "GaleLeasedClock-1-1-1-2" + p.config
		if got := here.Expected(t, config); got != want {
			t.Errorf("%s expects %q, want %q", config, got, want)
		}
	}
}
