package simulate

import (
	"time"

	"github.com/weir-dev/weir/pkg/limiter"
	"github.com/weir-dev/weir/pkg/store"
)

// A message is what a holder sends.
type message struct {
	node    *node
	params  limiter.Params
	command limiter.Command
	known   store.Recollection
	term    uint64 // the latest that the holder heard of
	look    bool   // only what the clock shows is asked
}

// An answer is what it hears.
type answer struct {
	limiter.Result
	begun limiter.Instant // start of the memory that answered, 0 when that remembers all
	term  uint64          // of the controller that answered
}

// A keeper keeps the counters.
type keeper interface {
	// apply decides a message that has arrived, or reports false when nobody answers.
	apply(m message) (answer, bool)
}

// A client is what a process knows of the clocks and memories of what it asks. The clients
// in pkg/store/redis and internal/sidecar/fleet make the same of the same values.
type client struct {
	clock    store.Reading
	memories store.Recollection
	doubtful limiter.Instant // up to which memories may have granted that it never heard of
	term     uint64
}

// message returns what to send.
func (c *client) message(n *node, p limiter.Params, cmd limiter.Command) message {
	cmd.Floor = max(cmd.Floor, n.world.rules.floor(c.clock, n.now()))
	return message{node: n, params: p, command: cmd, known: c.known(), term: c.term}
}

func (c *client) known() store.Recollection {
	r := c.memories
	r.Behind = c.clock.Behind()
	if r.Since == 0 && c.doubtful > 0 {
		r.Doubtful = max(r.Doubtful, c.doubtful+1)
	}
	return r
}

// hear takes an answer to a command that was sent as asked. It reports false when that is
// of a controller that another one followed.
func (c *client) hear(own limiter.Command, asked message, a answer, received int64) bool {
	if a.term < c.term {
		return false
	}
	if a.term > c.term {
		c.term, c.clock = a.term, c.clock.Pause()
	}
	c.clock = c.clock.Answered(own, a.Result, received)
	reached := a.Now.Add(a.RetryAfter)
	if a.Reason == limiter.ClockBehind && reached == asked.command.Floor && reached > own.Floor {
		c.doubtful = max(c.doubtful, reached)
	}
	c.meet(a)
	return true
}

// looked takes what a clock shows.
func (c *client) looked(a answer, sent, received int64) {
	c.clock = c.clock.Looked(a.Now, sent, received)
	c.meet(a)
}

// meet notes which memory answered.
func (c *client) meet(a answer) {
	if a.begun > 0 {
		c.memories = c.known().Answered(a.begun, a.Now)
	}
}

// A lookout is the controller as it looks at the server's clock, to send holders what
// it saw when they start.
type lookout struct {
	client
	own clock
}

// look asks the server what its clock shows.
func (l *lookout) look(w *world) {
	a, ok := w.keeper.apply(message{look: true})
	if !ok {
		return
	}
	at, before := l.own.at(w.now), l.memories.Since
	behind := a.Now < l.clock.At(at)
	l.looked(a, at, at)
	if behind && before != a.begun {
		l.doubtful = l.clock.Behind()
	}
}

// brief returns what a holder is given when it starts.
func (l *lookout) brief(n *node) client {
	at := l.clock.At(l.own.at(n.world.now))
	return client{clock: store.Reading{}.Observe(at, n.now()), doubtful: l.doubtful}
}

// watch has holders, and the lookout, ask again and again what the server's clock shows.
func (w *world) watch() {
	w.lookout.look(w)
	w.after(w.Look, w.watch)
	for _, n := range w.nodes {
		w.after(time.Duration(w.chance.Int64N(int64(w.Look))), n.look)
	}
}
