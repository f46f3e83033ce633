package account

import (
	"encoding/binary"
	"fmt"
	"iter"
	"strconv"
	"testing"
	"time"

	"github.com/weir-dev/weir/internal/proof/explore"
	"github.com/weir-dev/weir/pkg/limiter"
)

// A backstep is one holder whose store comes and goes while its clock is set, and what was
// charged so far.
type backstep struct {
	own    LocalShare
	view   StoreTime
	now    int64
	ahead  limiter.Micros  // of the store's clock
	served limiter.Instant // the latest by the store's clock
	steps  int             // left
	local  [backWindows]int8
	store  [backWindows]bool
	over   bool
}

const (
	backWindows = 20
	backTicks   = 5
	backSteps   = 2
	backHalf    = 500 * limiter.Millisecond
	backBegin   = 10 * limiter.Second // by both clocks
)

func (b backstep) clock() limiter.Instant { return instantOf(b.now).Add(b.ahead) }

// charge notes a unit of the window that the store's clock shows or is thought to.
func (b *backstep) charge(at limiter.Instant, local bool, share int64) {
	i := int64(at) / int64(limiter.Second)
	if local {
		b.local[i]++
	} else {
		b.store[i] = true
	}
	b.over = b.over || int64(b.local[i]) > share || b.local[i] > 0 && b.store[i]
}

// encode appends what distinguishes the state from others.
func (b backstep) encode(to []byte) []byte {
	add := func(ns ...int64) {
		for _, n := range ns {
			to = binary.AppendVarint(to, n)
		}
	}
	s, c := b.own, b.view.Clock
	add(int64(s.counts.n), s.last, int64(s.newest), s.free, c.low, c.high, c.at)
	add(int64(b.view.Seen), int64(b.view.Floor), b.now, int64(b.ahead), int64(b.served), int64(b.steps))
	for _, w := range s.counts.open[:s.counts.n] {
		add(int64(w.Window), w.Index, w.Granted)
	}
	for i := range b.local {
		add(int64(b.local[i]))
		to = strconv.AppendBool(to, b.store[i])
	}
	return strconv.AppendBool(strconv.AppendBool(to, s.ownClock), c.Known)
}

// next yields all that can happen. A take reports the store's clock, and is granted when
// the holder's share does not stand against it.
func (b backstep) next(p limiter.Params) iter.Seq2[string, backstep] {
	remember := func(b *backstep) {
		var floor limiter.Instant
		b.own, floor = b.own.Prune(b.view.Clock, b.now)
		b.view.Floor = max(b.view.Floor, floor)
	}
	return func(yield func(string, backstep) bool) {
		if b.now < Nanos(backBegin+backTicks*backHalf) {
			next := b
			next.now += Nanos(backHalf)
			remember(&next)
			if !yield("half a window passes", next) {
				return
			}
		}
		for _, by := range []limiter.Micros{-2 * limiter.Second, -limiter.Second, 2 * limiter.Second} {
			// A holder that never heard of the store cannot know that its clock was set.
			if b.steps == 0 || !b.view.Clock.Known {
				continue
			}
			next := b
			next.steps--
			next.ahead += by
			if !yield(fmt.Sprintf("the store's clock is set by %d s", by/limiter.Second), next) {
				return
			}
		}
		heard := b
		heard.view.Clock = b.view.Clock.Observe(b.now, b.now, b.clock())
		heard.view.Seen = max(b.view.Seen, b.clock())
		remember(&heard)
		if !yield("another counter is asked for", heard) {
			return
		}
		// A store grants nothing before what it or the holder knows that its clock showed.
		if b.clock() >= max(b.served, b.view.Seen) && !b.own.Covers(b.view.Clock, b.now) {
			heard.served = b.clock()
			if !heard.own.Covers(heard.view.Clock, b.now) && heard.view.Behind(b.clock()) == 0 {
				heard.charge(b.clock(), false, p.Rates[0].Limit)
			}
			if !yield("the store is asked", heard) {
				return
			}
		}
		next := b
		remember(&next)
		s, res := next.own.Admit(p, 1, next.view, b.now, 1)
		if !res.Allowed {
			return
		}
		next.own = s
		at := b.clock()
		if b.view.Clock.Known {
			at = b.view.Clock.Midpoint(b.now)
		}
		next.charge(at, true, p.Rates[0].Limit)
		yield("a share is admitted", next)
	}
}

// TestEveryHistoryOfAClockThatIsSetChargesAWindowOnce at the store or locally, for whatever
// order in which the store is heard of, its clock is set and requests come.
func TestEveryHistoryOfAClockThatIsSetChargesAWindowOnce(t *testing.T) {
	for name, p := range map[string]limiter.Params{
		"one rate":  {Rates: []limiter.Rate{{Limit: 1, Window: limiter.Second}}},
		"two rates": {Rates: []limiter.Rate{{Limit: 1, Window: limiter.Second}, {Limit: 3, Window: 3 * limiter.Second}}},
		"blind":     {Rates: []limiter.Rate{{Limit: 2, Window: limiter.Second}}},
	} {
		t.Run(name, func(t *testing.T) {
			begin := backstep{
				now: Nanos(backBegin) + int64(250*time.Millisecond), steps: backSteps,
				view: StoreTime{Seen: NeverSeen, Swapped: Past},
			}
			if name != "blind" {
				begin.view.Clock = ClockOffset{}.Observe(begin.now, begin.now, begin.clock())
				begin.view.Seen = begin.clock().Add(-3 * limiter.Second)
			}
			both := 0
			report, err := explore.Search(explore.Model[backstep, string]{
				Init:   []backstep{begin},
				Next:   func(b backstep) iter.Seq2[string, backstep] { return b.next(p) },
				Encode: func(to []byte, b backstep) []byte { return b.encode(to) },
				Check: func(b backstep) error {
					if b.over {
						return fmt.Errorf("a window was charged twice: locally %v, at the store %v", b.local, b.store)
					}
					return nil
				},
				Bound: 2_000_000,
			}, func(b backstep) {
				if b.view.Floor > b.clock() || b.own.newerThan(b.clock()) {
					both++
				}
			})
			if err != nil {
				t.Fatal(err)
			}
			if report.Counterexample != nil {
				t.Errorf("after\n%v", report.Counterexample)
			}
			if both == 0 {
				t.Error("the clock was never behind a share: the search tests nothing")
			}
			t.Logf("%d states, %d behind a share", report.States, both)
		})
	}
}
