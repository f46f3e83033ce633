package pools_test

import (
	"fmt"
	"iter"

	"github.com/weir-dev/weir/internal/proof/explore"
	"github.com/weir-dev/weir/pkg/concurrency/pool"
	"github.com/weir-dev/weir/pkg/limiter"
)

// A fleet is a model: holders of one pool, their coordinator, and what may happen
// between them. Only what it switches on happens.
type fleet struct {
	holders  int
	policies []pool.Params // the first is in force; each holder hears of the next ones in order
	opinions []int64       // limits that holders may infer, 0 for none; none at all without them
	keys     int           // of requests, each with the whole limit for itself; 0 when the limit is of all requests

	late    int   // of how many holders beats and answers take any time, and may be lost; otherwise a beat is one step
	strays  bool  // a beat may arrive that was given up, or that arrived already, however long ago it was sent
	overdue bool  // an answer may arrive that the holder does not wait for any more
	leaves  bool  // holders may leave
	starts  int64 // processes that start after one before them left or died
	forgets int64 // how often the coordinator's memory may be lost
	moves   int64 // how often it may be handed over to another leader
	peaks   bool  // holders remember the most they had in flight, and beats arrive before their share would end or never

	margin  int64 // ticks before the end of its share that a holder admits nothing more
	request int64 // ticks that a request may take after that; 0 when it is aborted
	gains   int64 // ticks the coordinator's clock may gain on the holders'
	early   bool  // the gains evict holders that still use their shares: the promise is about those that are known

	rules  rules
	spare  int64 // by how much the bound is lowered, to refute that it could be
	loose  bool  // only what is in flight is checked
	uneven bool  // the limit cannot be split into equal parts, so that it matters who joined first
	limit  int   // of the search

	scratch scratch
}

// rules are the production code and what it needs from its surroundings, which a test may
// weaken.
type rules struct {
	altered func(*pool.Command) // changes what holders report
	step    func(*pool.State, pool.Params, limiter.Instant, pool.Command) (pool.Grant, error)
	begin   func(term int64, now limiter.Instant, p pool.Params) *pool.State
	moved   func(m pool.Memory, now limiter.Instant) (*pool.State, error)
	counts  func(h *holder, g pool.Grant) bool   // whether an answer is applied
	takes   func(g pool.Grant, held int64) int64 // the share that a holder with held slots in use takes from an answer
	since   func(sent, received int64) int64     // when the life of a share begins
	fullest func(of byKey) int64                 // what a holder reports of what it has in flight of each key
	busy    bool                                 // a holder leaves with work in flight, and does not report
	sameAs  bool                                 // a process that starts takes the name of the one before it
	reuses  bool                                 // generations begin again when a holder joins again
	lingers bool                                 // a leader goes on after another began
}

func production() rules {
	return rules{
		altered: func(*pool.Command) {},
		step:    (*pool.State).Step,
		begin:   pool.Begin,
		moved:   pool.Restore,
		counts: func(h *holder, g pool.Grant) bool {
			return g.Term > h.share.term || g.Term == h.share.term && g.Seq > h.answered
		},
		takes: func(g pool.Grant, held int64) int64 {
			if g.Quarantined > 0 {
				return min(g.Share, held)
			}
			return g.Share
		},
		since:   func(sent, _ int64) int64 { return sent },
		fullest: func(of byKey) int64 { return of.count().InFlight() },
	}
}

// tick is the unit of a model's time, and epoch is when it begins.
const (
	tick  = limiter.Second
	epoch = limiter.Instant(1000 * limiter.Second)
)

// A world is a state of a fleet.
type world struct {
	ticks   int64 // true time
	gained  int64 // ticks by which the coordinator's clock is ahead
	forgot  int64 // memories that were lost
	moved   int64
	started int64
	pool    *coordinator
	before  *coordinator // the last whose memory was lost
	holders [maxHolders]holder
	bound   int64             // the largest limit since what is kept for all fitted below it
	joined  [maxHolders]int64 // generation when it joined last, while generations begin again
	broken  error
}

// A holder is a pod, with one process after the other.
type holder struct {
	up       bool
	boot     int64 // processes before it
	policy   int   // the newest it heard of
	seq      int64 // of the last beat sent
	heard    int64 // of the last one that arrived
	answered int64 // of the last one whose answer was applied
	share    share
	inflight int64 // of the key that has the most, where the limit is of every key
	of       byKey
	over     int64 // when what runs under a share is over

	beat    *beat   // under way to the coordinator
	answer  *answer // under way back
	stray   *beat   // may arrive at the coordinator any time
	overdue *answer // may arrive at the holder any time

	peak, since int64 // the most in flight since the last beat that was answered, and since the last that was sent
}

// A share is what a holder enforces.
type share struct{ term, generation, units, ends int64 }

// A beat is a command under way.
type beat struct {
	command pool.Command
	boot    int64
	policy  int
	sent    int64
}

// An answer is a grant under way.
type answer struct {
	grant pool.Grant
	boot  int64
	sent  int64
}

// now is what the coordinator's clock reads.
func (f *fleet) now(w *world) limiter.Instant {
	return epoch.Add(limiter.Micros(w.ticks+w.gained) * tick)
}

func (f *fleet) ttl() int64 { return int64(f.policies[0].TTL / tick) }

// name is a process's: that of a pod is used again, a nonce is not.
func (f *fleet) name(n int, boot int64) string {
	if f.rules.sameAs {
		boot = 0
	}
	return processes[n][boot]
}

// processes are the names of all that may be.
var processes = func() (list [maxHolders][4]string) {
	for n, pod := range names {
		for boot := range list[n] {
			list[n][boot] = fmt.Sprintf("%s%d", pod, boot)
		}
	}
	return list
}()

// fenced reports whether a holder's share has ended.
func (f *fleet) fenced(w *world, n int) bool {
	return w.ticks >= w.holders[n].share.ends-f.margin
}

// alike reports whether worlds that differ by the order of holders are one.
func (f *fleet) alike() bool { return !f.uneven && f.late%f.holders == 0 }

// left is how long a record lasts, in ticks.
func (f *fleet) left(w *world, r pool.Record) int64 {
	return int64(w.pool.at.Add(r.Expires).Sub(f.now(w)) / tick)
}

// held is the share that a holder may use now.
func (f *fleet) held(w *world, n int) int64 {
	if f.fenced(w, n) {
		return 0
	}
	return w.holders[n].share.units
}

func (w *world) inflight() int64 {
	var total int64
	var of byKey
	for _, h := range w.holders {
		total += h.inflight
		of = of.plus(h.of)
	}
	if of != (byKey{}) {
		return of.most()
	}
	return total
}

// model returns the state machine to search.
func (f *fleet) model() explore.Model[world, event] {
	w := world{pool: first(), bound: f.policies[0].Initial}
	for n := range f.holders {
		w.holders[n].up = true
	}
	return explore.Model[world, event]{
		Init: []world{w}, Next: f.next, Encode: f.encode, Check: f.check, Bound: f.limit,
	}
}

// An event is what happened.
type event struct {
	verb   string
	holder int // nobody when it is not a holder's
	amount int64
}

const nobody = -1

func (e event) String() string {
	s := e.verb
	if e.holder != nobody {
		s = names[e.holder] + " " + s
	}
	if e.amount >= 0 {
		s += fmt.Sprintf(" %d", e.amount)
	}
	return s
}

// An emitter takes one thing that can happen and the world after it.
type emitter func(event, world)

// next yields all that can happen.
func (f *fleet) next(w world) iter.Seq2[event, world] {
	return func(yield func(event, world) bool) {
		open := true
		emit := func(e event, v world) { open = open && yield(e, v) }
		for n := range f.holders {
			f.work(w, n, emit)
			f.beats(w, n, emit)
			f.answers(w, n, emit)
			f.strayed(w, n, emit)
			f.lives(w, n, emit)
		}
		f.surround(w, emit)
	}
}

// check returns what is wrong with a world.
func (f *fleet) check(w world) error {
	if w.broken != nil {
		return w.broken
	}
	if total := w.inflight(); total > w.bound-f.spare && !f.excused(&w) {
		return fmt.Errorf("%d are in flight, and %d may be", total, w.bound-f.spare)
	}
	if f.loose || w.pool.quarantined(f.now(&w)) {
		return nil // what holders use is not known yet
	}
	for n := range f.holders {
		if err := f.covered(&w, n); err != nil {
			return err
		}
	}
	return nil
}

// excused reports whether the promise does not hold at present, because a holder was
// evicted too early. It holds again when all are known and what is kept for them fits.
func (f *fleet) excused(w *world) bool {
	return f.early && (f.strangers(w, nobody) || w.pool.reserved() > w.pool.memory.Limit)
}

// covered checks that for a holder that the coordinator knows enough is kept.
func (f *fleet) covered(w *world, n int) error {
	h := w.holders[n]
	r, known := w.pool.find(f.name(n, h.boot))
	if !known || !h.up {
		return nil
	}
	if kept, used := w.pool.reserve(r), max(h.inflight, f.held(w, n)); kept < used {
		return fmt.Errorf("%d are kept for %s, which uses %d", kept, r.Holder, used)
	}
	return nil
}
