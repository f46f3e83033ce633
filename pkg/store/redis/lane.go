package redis

import (
	"context"
	"slices"
	"sync"
	"time"

	goredis "github.com/redis/go-redis/v9"
)

const (
	// maxFlights is how many round trips of a lane are under way at once.
	maxFlights = 3
	// patience is for how long a round trip is under way before another one begins beside
	// it: of a server that is far, or over a connection that hangs.
	patience = 10 * time.Millisecond
	// maxShared bounds the calls of one round trip, and so for how long a server
	// serves nobody else.
	maxShared = 64
)

// A lane lets calls that come while others are under way share round trips, as
// databases share the writes of a log (group commit): what many callers cost a server
// is mostly the handling of their packets. All calls of a lane go to one server, so
// that who waits for one that hangs keeps nobody from the rest of a cluster. What the
// script of batches decides shares one call of it, too.
type lane struct {
	client   goredis.UniversalClient
	batch    script
	ends     string // key of the ends of what batch makes
	patience time.Duration

	mu      sync.Mutex
	flights int        // under way; guarded by mu
	started time.Time  // the last of them; guarded by mu
	waiting []*pending // for the next; guarded by mu
	closed  bool       // guarded by mu
	shared  sync.WaitGroup
}

var _ processor = (*lane)(nil)

// A pending is a call that waits for its reply: a command as it is sent, or one of a
// batch.
type pending struct {
	cmd  goredis.Cmder
	ask  *ask          // nil of what is sent as it is
	done chan struct{} // closed when there is a reply or an error
}

func (p *pending) err() error {
	if p.ask != nil {
		return p.ask.err
	}
	return p.cmd.Err()
}

// Process sends cmd, alone or with others. It returns when there is a reply, at the
// latest when ctx is done.
func (l *lane) Process(ctx context.Context, cmd goredis.Cmder) error {
	return l.send(ctx, &pending{cmd: cmd})
}

// decide is Process for one of a batch.
func (l *lane) decide(ctx context.Context, a *ask) error {
	return l.send(ctx, &pending{ask: a})
}

func (l *lane) send(ctx context.Context, p *pending) error {
	if l.board(p) {
		defer l.land()
		l.fly(ctx, []*pending{p})
		return p.err()
	}
	select {
	case <-p.done:
		return p.err()
	case <-ctx.Done():
		l.leave(p)
		return ctx.Err()
	}
}

// board reports whether a call may be sent at once and alone. Otherwise it waits.
func (l *lane) board(p *pending) (alone bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	starts := l.flights == 0 || l.flights < maxFlights && time.Since(l.started) >= l.patience
	if l.closed || starts && len(l.waiting) == 0 { // a client that is closed says so
		l.flights++
		l.started = time.Now()
		return true
	}
	p.done = make(chan struct{})
	l.waiting = append(l.waiting, p)
	if starts {
		l.flights++
		l.depart(l.share())
	}
	return false
}

// leave withdraws a call that was not sent yet.
func (l *lane) leave(p *pending) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.waiting = slices.DeleteFunc(l.waiting, func(o *pending) bool { return o == p })
}

// land ends a flight, or goes on with those who wait.
func (l *lane) land() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if share := l.share(); share != nil {
		l.depart(share)
	}
}

// depart sends calls, and those who wait after them. They end by the client's time-outs,
// since the callers have different deadlines. mu is held.
func (l *lane) depart(share []*pending) {
	l.shared.Go(func() {
		for ; share != nil; share = l.next() {
			l.fly(context.Background(), share)
			for _, p := range share {
				close(p.done)
			}
		}
	})
}

func (l *lane) next() []*pending {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.share()
}

// share returns those who share the next round trip, or none and ends a flight; mu is
// held.
func (l *lane) share() []*pending {
	n := min(len(l.waiting), maxShared)
	if n == 0 {
		l.flights--
		return nil
	}
	l.started = time.Now()
	share := slices.Clone(l.waiting[:n])
	l.waiting = slices.Delete(l.waiting, 0, n)
	return share
}

// fly sends calls in one round trip, two after the server lost the script of batches.
// Each has its own error.
func (l *lane) fly(ctx context.Context, share []*pending) {
	var asks []*ask
	var cmds []goredis.Cmder
	for _, p := range share {
		if p.ask != nil {
			asks = append(asks, p.ask)
		} else {
			cmds = append(cmds, p.cmd)
		}
	}
	if len(asks) == 0 {
		l.carry(ctx, cmds)
		return
	}
	keys, args := batchOf(asks, l.ends)
	batch := newCall(ctx, "evalsha", l.batch.sha, keys, args)
	l.carry(ctx, append(cmds, batch))
	if goredis.HasErrorPrefix(batch.Err(), "NOSCRIPT") {
		batch = newCall(ctx, "eval", l.batch.text, keys, args)
		l.carry(ctx, []goredis.Cmder{batch})
	}
	answer(asks, batch.Cmd)
}

// carry sends commands in one round trip.
func (l *lane) carry(ctx context.Context, cmds []goredis.Cmder) {
	if len(cmds) == 1 {
		_ = l.client.Process(ctx, cmds[0]) // it has its error
		return
	}
	_, _ = l.client.Pipelined(ctx, func(pipe goredis.Pipeliner) error {
		for _, cmd := range cmds {
			_ = pipe.Process(ctx, cmd)
		}
		return nil
	})
}

// beside runs f beside the calls, unless the lane is closed.
func (l *lane) beside(f func()) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.closed {
		l.shared.Go(f)
	}
}

// close fails those who wait, and those to come.
func (l *lane) close() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.closed = true
	for _, p := range l.waiting {
		if p.ask != nil {
			p.ask.err = goredis.ErrClosed
		} else {
			p.cmd.SetErr(goredis.ErrClosed)
		}
		close(p.done)
	}
	l.waiting = nil
}

// lanes are those of all partitions.
type lanes []*lane

// newLanes makes one lane for all keys of a single server. In a cluster each
// partition has its own.
func newLanes(client goredis.UniversalClient, batch script) lanes {
	n := partitions
	if _, single := client.(*goredis.Client); single {
		n = 1
	}
	list := make(lanes, n)
	for i := range list {
		list[i] = &lane{client: client, batch: batch, ends: endsKeys[i], patience: patience}
	}
	if n == 1 {
		list[0].ends = commonEnds
	}
	return list
}

func (ls lanes) of(partition uint32) *lane { return ls[int(partition)%len(ls)] }

// close closes the client, which cuts short what is under way, and returns when
// nothing that was shared is.
func (ls lanes) close(client goredis.UniversalClient) error {
	for _, l := range ls {
		l.close()
	}
	err := client.Close()
	for _, l := range ls {
		l.shared.Wait()
	}
	return err
}
