package pool_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"

	"github.com/weir-dev/weir/pkg/concurrency/pool"
	"github.com/weir-dev/weir/pkg/limiter"
)

// A world is one pool, all its users and what is on the way between them. True time
// passes; the coordinator's clock is off by any amount. Messages arrive late, out of
// order, more than once or never.
type world struct {
	rules
	dice   *rand.Rand
	now    limiter.Instant
	offset limiter.Instant // of the coordinator's clock
	params pool.Params     // the newest
	state  *pool.State

	members []*member
	born    int
	wire    []message // to the coordinator
	mail    []letter  // to holders

	most     int64 // in flight at once so far
	happened map[string]int
}

// Rules are what can happen in a world and what its holders do not heed.
type rules struct {
	limit    int64 // 0: holders infer it
	loss     bool  // of the coordinator's memory
	edits    bool  // of the configuration
	prompt   bool  // nothing arrives so late that a share expires
	overstay limiter.Micros
	retrace  bool // holders go back to earlier grants
	greedy   bool // holders take new shares in a quarantine
	linger   bool // what is in flight when a share expires goes on
	torn     bool // what a report says is in flight was read before the share it names
}

const tick = limiter.Millisecond

type message struct {
	pool.Command
	params pool.Params
	sent   limiter.Instant
}

type letter struct {
	pool.Grant
	to   *member
	sent limiter.Instant
}

// A member is a holder as package concurrency has it, in as few words as possible.
type member struct {
	name           string
	params         pool.Params
	seq, taken     int64 // of its last command, and of the last grant it took
	term, applied  int64
	held           int64
	until          limiter.Instant
	fenced         bool // the share has expired, or there was none
	inFlight, peak int64
	before         int64 // in flight before its last request
	wants          bool  // requests are waiting
	gone           bool  // it left or died
}

func newWorld(seed uint64, r rules, p pool.Params) *world {
	w := &world{rules: r, dice: rand.New(rand.NewPCG(seed, 1)), params: p, now: 1 << 40, happened: map[string]int{}}
	w.skew()
	w.state = pool.New(1)
	for range 2 + w.dice.IntN(3) {
		w.enter()
	}
	return w
}

func (w *world) skew() { w.offset = limiter.Instant(w.dice.Int64N(1<<30) - 1<<29) }

func (w *world) clock() limiter.Instant { return w.now + w.offset }

func (w *world) enter() {
	w.born++
	w.members = append(w.members, &member{name: fmt.Sprintf("h%d", w.born), params: w.params, fenced: true, wants: w.one(2)})
}

func (w *world) one(n int) bool { return w.dice.IntN(n) == 0 }

// step lets one thing happen.
func (w *world) step() error {
	m := w.members[w.dice.IntN(len(w.members))]
	switch w.dice.IntN(32) {
	case 0, 1, 2, 3:
		w.pass(tick)
		if w.prompt {
			return w.hurry()
		}
	case 4, 5, 6, 7, 8:
		w.beat(m)
	case 9, 10, 11, 12, 13, 14:
		return w.deliver()
	case 15, 16, 17, 18, 19, 20:
		w.receive()
	case 21, 22, 23, 24:
		w.acquire(m)
	case 25, 26:
		w.release(m)
	case 27:
		m.wants = !m.wants
	case 28:
		w.comeAndGo(m)
	case 29:
		return w.change(m)
	case 30:
		w.drop()
	case 31:
		w.rush(m)
	}
	return nil
}

// pass lets time pass. A holder stops by itself when its share expires.
func (w *world) pass(d limiter.Micros) {
	w.now = w.now.Add(d)
	for _, m := range w.members {
		w.fence(m)
	}
}

// fence stops a holder whose share expired, were it of nothing.
func (w *world) fence(m *member) {
	if m.fenced || w.now < m.until.Add(w.overstay) {
		return
	}
	m.fenced, m.held = true, 0
	if !w.linger {
		m.inFlight = 0
	}
	w.happened["a share expired"]++
}

// hurry loses what is too old and lets those beat without fail that would expire.
func (w *world) hurry() error {
	late := w.now.Add(-w.params.TTL / 4)
	w.wire = slices.DeleteFunc(w.wire, func(c message) bool { return c.sent <= late })
	w.mail = slices.DeleteFunc(w.mail, func(l letter) bool { return l.sent <= late })
	for _, m := range w.members {
		if m.taken == 0 || m.until > w.now.Add(w.params.TTL/2) {
			continue
		}
		w.beat(m)
		if err := w.apply(w.wire[len(w.wire)-1]); err != nil {
			return err
		}
		w.take(m, w.mail[len(w.mail)-1])
	}
	return nil
}

func (w *world) beat(m *member) { w.send(m, pool.Beat) }

func (w *world) send(m *member, op pool.Op) {
	m.seq++
	c := pool.Command{
		Op: op, Holder: m.name, Seq: m.seq, Term: m.term, Applied: m.applied, Held: m.held,
		InFlight: m.inFlight, Peak: m.peak,
	}
	if w.torn {
		c.InFlight = min(m.before, m.inFlight)
	}
	if w.limit == 0 && !w.one(3) {
		c.Limit = 1 + w.dice.Int64N(12)
	}
	w.wire = append(w.wire, message{c, m.params, w.now})
}

// deliver hands any command to the coordinator, and maybe keeps it to come again.
func (w *world) deliver() error {
	if len(w.wire) == 0 {
		return nil
	}
	i := w.dice.IntN(len(w.wire))
	c := w.wire[i]
	if w.one(4) {
		w.happened["a command came twice"]++
	} else {
		w.wire = append(w.wire[:i], w.wire[i+1:]...)
	}
	return w.apply(c)
}

func (w *world) apply(c message) error {
	known := w.records()
	g, err := w.state.Step(c.params, w.clock(), c.Command)
	if behind := (*pool.BehindError)(nil); errors.As(err, &behind) {
		return fmt.Errorf("a memory that forgot nothing is behind: %w", err)
	} else if err != nil {
		return err
	}
	if r, ok := known[c.Holder]; ok && c.Seq <= r.Seq {
		w.happened["a command was stale"]++
	}
	if _, ok := known[c.Holder]; !ok && c.Applied > 0 {
		w.happened["a holder came back"]++
	}
	if g.Quarantined > 0 && g.Share > 0 {
		w.happened["a quarantine confirmed a share"]++
	}
	if w.prompt && g.Occupied > g.Bound {
		return fmt.Errorf("an overshoot is reported that did not happen: %+v to %+v", g, c.Command)
	}
	for _, m := range w.members {
		if m.name == c.Holder {
			w.mail = append(w.mail, letter{g, m, c.sent})
		}
	}
	return nil
}

func (w *world) receive() {
	if len(w.mail) == 0 {
		return
	}
	i := w.dice.IntN(len(w.mail))
	l := w.mail[i]
	w.mail = append(w.mail[:i], w.mail[i+1:]...)
	w.take(l.to, l)
}

func (w *world) take(m *member, l letter) {
	if m.gone || l.Term < m.term && !w.retrace || l.Term == m.term && l.Seq <= m.taken && !w.retrace {
		w.happened["a grant came too late"]++
		return
	}
	share := l.Share
	if l.Quarantined > 0 && !w.greedy {
		share = min(share, m.held)
	}
	m.term, m.applied, m.taken = l.Term, l.Generation, l.Seq
	m.held, m.until, m.fenced = share, l.sent.Add(l.TTL), false
	m.peak = m.inFlight
	w.fence(m)
}

func (w *world) acquire(m *member) {
	if m.inFlight < m.held && !m.gone {
		m.before = m.inFlight
		m.inFlight++
		m.peak = max(m.peak, m.inFlight)
	}
}

// rush fills what a holder may use.
func (w *world) rush(m *member) {
	for m.wants && m.inFlight < m.held {
		w.acquire(m)
	}
}

func (w *world) release(m *member) {
	if m.inFlight > 0 {
		m.inFlight--
	}
}

func (w *world) comeAndGo(m *member) {
	switch {
	case len(w.members) < 5 && w.one(2):
		w.enter()
		return
	case len(w.members) < 2 || w.prompt && m.inFlight > 0:
		return
	case w.prompt: // its last beats are lost
		w.wire = slices.DeleteFunc(w.wire, func(c message) bool { return c.Holder == m.name })
		fallthrough
	case w.one(2):
		m.inFlight, m.peak = 0, 0
		w.send(m, pool.Leave)
		w.happened["a holder left"]++
	default:
		w.happened["a holder died"]++
	}
	m.gone, m.inFlight, m.held = true, 0, 0
	w.members = slices.DeleteFunc(w.members, func(o *member) bool { return o == m })
}

// change is what rarely happens.
func (w *world) change(m *member) error {
	m.params = w.params
	switch w.dice.IntN(4) {
	case 0:
		if w.loss {
			w.forget()
		}
	case 1:
		return w.handOver()
	case 2:
		if w.edits {
			w.edit()
		}
	}
	return nil
}

// forget lets the coordinator lose its memory. Its answers are still on the way.
func (w *world) forget() {
	w.skew()
	w.state = pool.Begin(w.state.Term()+1, w.clock(), w.params)
	w.happened["a memory was lost"]++
}

func (w *world) handOver() error {
	data, err := json.Marshal(w.state.Memory())
	if err != nil {
		return err
	}
	var m pool.Memory
	if err := json.Unmarshal(data, &m); err != nil {
		return err
	}
	w.skew()
	w.state, err = pool.Restore(m, w.clock())
	w.happened["a memory was handed over"]++
	return err
}

// edit changes everything that may change. The longest TTL so far is the quarantine.
func (w *world) edit() {
	w.params.Generation++
	w.params.TTL = limiter.Micros(4+w.dice.IntN(12)) * tick
	w.params.Quarantine = max(w.params.Quarantine, w.params.TTL)
	w.params.Allocation = pool.Allocation(w.dice.IntN(2))
	w.params.Aggregate = pool.Aggregate(w.dice.IntN(2))
	w.happened["the configuration changed"]++
}

func (w *world) drop() {
	if len(w.wire) > 0 && w.one(2) {
		w.wire = w.wire[1:]
	}
	if len(w.mail) > 0 && w.one(2) {
		w.mail = w.mail[1:]
	}
}

func (w *world) inFlight() (sum int64) {
	for _, m := range w.members {
		sum += m.inFlight
	}
	return sum
}

func (w *world) records() map[string]pool.Record {
	out := map[string]pool.Record{}
	for _, r := range w.state.Memory().Holders {
		out[r.Holder] = r
	}
	return out
}
