package pool

import (
	"maps"
	"slices"

	"github.com/weir-dev/weir/pkg/limiter"
)

// A State is one memory of one pool. It is changed in place and belongs to one
// caller at a time. A beat costs time logarithmic in the number of holders, besides
// moving the opinions between its old one and its new one.
type State struct {
	term       int64
	generation int64 // of the newest share that was issued to anybody
	params     Params
	now        limiter.Instant // never goes back
	until      limiter.Instant // end of the quarantine
	waited     limiter.Micros  // the longest TTL that the quarantine waits for

	slots    map[string]int32 // of holders
	holders  []holder         // by slot: dense, so that shares differ by one at most
	queue    expiries
	opinions opinions
	hungry   ranks // of holders, by slot

	limit    int64
	reserved int64 // Σ reserves
	granted  int64 // Σ shares
	inFlight int64 // Σ in flight, as reported last
	modest   int64 // Σ in flight + 1 of those that are not hungry
	bound    int64 // the largest limit since reserved was last at most the limit

	// The findings of the last report, for its answer.
	occupied, allowed int64
}

// A holder is what a memory knows of one.
type holder struct {
	name       string
	seq        int64 // largest of its commands
	generation int64 // of share
	share      int64
	unacked    int64 // the largest share that was issued and not seen superseded
	held       int64 // as reported last, as are the next three
	inFlight   int64
	peak       int64
	opinion    opinion
	expires    limiter.Instant
	queued     int32 // place in the queue of expiries
	hungry     bool
}

// New returns a memory that is the first of its pool: nobody holds a share of
// another. The term is at least 1.
func New(term int64) *State {
	return &State{term: term, slots: make(map[string]int32)}
}

// Begin returns a memory that begins at now, after one that was lost. Its term is
// above all before it. Until p.Quarantine has passed, which is when the last share
// of the memory before has expired, it lets holders keep what they still hold and
// grants nothing else.
func Begin(term int64, now limiter.Instant, p Params) *State {
	s := New(term)
	s.now, s.until, s.waited = now, now.Add(p.Quarantine), p.Quarantine
	return s
}

// Clone returns a copy that shares nothing with s.
func (s *State) Clone() *State {
	c := *s
	c.slots = maps.Clone(s.slots)
	c.holders = slices.Clone(s.holders)
	c.queue = slices.Clone(s.queue)
	c.opinions = slices.Clone(s.opinions)
	c.hungry = slices.Clone(s.hungry)
	return &c
}

// Term returns the memory's term.
func (s *State) Term() int64 { return s.term }

// Generation returns that of the newest share.
func (s *State) Generation() int64 { return s.generation }

// Limit returns the fleet's limit, 0 before the first command.
func (s *State) Limit() int64 { return s.limit }

// Holders returns how many there are, those included that expired since the last
// command.
func (s *State) Holders() int { return len(s.holders) }

func (s *State) quarantined() bool { return s.now < s.until }
