package simulate

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/weir-dev/weir/pkg/limiter"
	"github.com/weir-dev/weir/pkg/store"
	"github.com/weir-dev/weir/pkg/twotier"
)

// Weir runs the production limiter, configured as cfg says but for the parameters,
// the number of holders and the time-out, which the scenario has.
func Weir(name string, cfg twotier.Config) Model {
	return Model{Name: name, start: func(n *node) holder { return newProcess(n, cfg) }}
}

// A process runs a limiter. To the limiter it is the machine and the way to the
// store: what would wait there gives way to the run here.
type process struct {
	node    *node
	config  twotier.Config
	limiter *twotier.Limiter
	key     *twotier.Key
	client  client
	crashed bool

	begun   []func()     // to be run beside the code that runs
	blocked []*coroutine // that wait for time to pass or for an answer
	queues  []queued     // that wait for a channel, in the order they began to
}

// queued coroutines wait for the same channel.
type queued struct {
	done    <-chan struct{}
	waiting []*coroutine
}

var (
	_ twotier.Virtual = (*process)(nil)
	_ twotier.Store   = (*process)(nil)
)

func newProcess(n *node, cfg twotier.Config) *process {
	cfg.Scope = key.Scope
	cfg.Params, cfg.Holders, cfg.MaxKeys = n.params, int64(n.world.Holders), 1
	// The network ends calls, by virtual time; the limiter would by real time.
	cfg.Timeout = 24 * time.Hour
	p := &process{node: n, config: cfg}
	if n.world.lookout != nil {
		p.client = n.world.lookout.brief(n)
	}
	var err error
	if p.limiter, err = twotier.New(cfg, twotier.NewVirtualBreaker(p, p)); err != nil {
		panic(err) // a model is made by this repository
	}
	p.key = p.limiter.Key("", "")
	return p
}

func (p *process) request(cost int64) {
	p.run(func() {
		d, err := p.key.Acquire(context.Background(), cost)
		switch {
		case p.crashed: // with the connection of the client
		case err != nil:
			panic(fmt.Sprintf("simulate: a limiter failed: %v", err))
		case d.Allowed:
			p.node.admit(cost, d.Windows)
		default:
			p.node.refuse(cost)
		}
	})
}

func (p *process) configure(params limiter.Params) {
	p.config.Params = params
	p.run(func() { p.limiter.Reconfigure(p.config) })
}

// look asks what the server's clock shows.
func (p *process) look() {
	sent := p.node.now()
	p.node.world.send(message{node: p.node, look: true}, func(a answer, ok bool) {
		if ok && !p.crashed {
			p.client.looked(a, sent, p.node.now())
		}
	})
}

// crash ends what waits. Nothing that this would still do has an effect.
func (p *process) crash() {
	p.crashed = true
	for _, c := range p.blocked {
		c.end()
	}
	for _, q := range p.queues {
		for _, c := range q.waiting {
			c.end()
		}
	}
	p.blocked, p.queues, p.begun = nil, nil, nil
}

// run starts a job, and then all that follows from it before time passes.
func (p *process) run(job func()) {
	p.node.world.crew.start(job)
	p.follow()
}

// resume goes on with a coroutine that is blocked.
func (p *process) resume(c *coroutine) {
	if p.crashed {
		return
	}
	at := slices.Index(p.blocked, c)
	p.blocked = slices.Delete(p.blocked, at, at+1)
	p.node.world.crew.resume(c)
	p.follow()
}

// follow runs what was begun and what needs to wait no longer.
func (p *process) follow() {
	for !p.crashed {
		if len(p.begun) > 0 {
			job := p.begun[0]
			p.begun = p.begun[1:]
			p.node.world.crew.start(job)
			continue
		}
		at := slices.IndexFunc(p.queues, queued.over)
		if at < 0 {
			return
		}
		q := p.queues[at]
		p.queues = slices.Delete(p.queues, at, at+1)
		for _, c := range q.waiting {
			p.node.world.crew.resume(c)
		}
	}
}

func (q queued) over() bool {
	select {
	case <-q.done:
		return true
	default:
		return false
	}
}

// block makes the running coroutine wait until resume is called for it.
func (p *process) block() error {
	c := p.node.world.crew.running
	if p.crashed {
		return errCrashed
	}
	p.blocked = append(p.blocked, c)
	if !c.wait() {
		return errCrashed
	}
	return nil
}

var (
	errCrashed  = errors.New("the process has crashed")
	errNoAnswer = errors.New("no answer")
)

// Now implements twotier.Virtual.
func (p *process) Now() int64 { return p.node.now() }

// Random implements twotier.Virtual.
func (p *process) Random(n int64) int64 { return p.node.rng.Int64N(n) }

// Go implements twotier.Virtual.
func (p *process) Go(f func()) { p.begun = append(p.begun, f) }

// Sleep implements twotier.Virtual.
func (p *process) Sleep(_ context.Context, d time.Duration) error {
	w, c := p.node.world, p.node.world.crew.running
	w.events.add(p.node.clock.when(p.node.now()+int64(d)), func() { p.resume(c) })
	return p.block()
}

// Wait implements twotier.Virtual.
func (p *process) Wait(_ context.Context, done <-chan struct{}) error {
	c := p.node.world.crew.running
	if p.crashed {
		return errCrashed
	}
	at := slices.IndexFunc(p.queues, func(q queued) bool { return q.done == done })
	if at < 0 {
		at = len(p.queues)
		p.queues = append(p.queues, queued{done: done})
	}
	p.queues[at].waiting = append(p.queues[at].waiting, c)
	if !c.wait() {
		return errCrashed
	}
	return nil
}

// Apply implements twotier.Store.
func (p *process) Apply(_ context.Context, _ store.Key, params limiter.Params, cmd limiter.Command) (limiter.Result, error) {
	w, c := p.node.world, p.node.world.crew.running
	if p.crashed {
		return limiter.Result{}, errCrashed
	}
	var reply answer
	var answered bool
	sent, m := w.now, p.client.message(p.node, params, cmd)
	w.send(m, func(a answer, ok bool) {
		reply, answered = a, ok
		p.resume(c)
	})
	if err := p.block(); err != nil {
		return limiter.Result{}, err
	}
	if !answered || !p.client.hear(cmd, m, reply, p.node.now()) {
		return limiter.Result{}, &store.UnavailableError{Store: "simulated", Cause: errNoAnswer}
	}
	res := reply.Result
	if w.weaken != nil {
		w.weaken(&res, limiter.Micros(w.now-sent)/1000)
	}
	return res, nil
}
