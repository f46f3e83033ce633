package redis

import (
	"context"
	"slices"
	"sync"

	goredis "github.com/redis/go-redis/v9"
)

const (
	// maxFlights is how many round trips of a lane are under way at once before calls
	// wait to share one. Few callers never wait.
	maxFlights = 3
	// maxShared bounds the calls of one round trip, and so for how long a server
	// serves nobody else.
	maxShared = 64
)

// A lane lets calls that come while others are under way share round trips, as
// databases share the writes of a log (group commit): what many callers cost a server
// is mostly the handling of their packets. All calls of a lane go to one server, so
// that who waits for one that hangs keeps nobody from the rest of a cluster.
type lane struct {
	client goredis.UniversalClient

	mu      sync.Mutex
	flights int        // under way; guarded by mu
	waiting []*pending // for the next; guarded by mu
	closed  bool       // guarded by mu
	shared  sync.WaitGroup
}

var _ processor = (*lane)(nil)

// A pending is a call that waits for its reply.
type pending struct {
	cmd  goredis.Cmder
	done chan struct{} // closed when cmd has its reply or error
}

// Process sends cmd, alone or with others. It returns when there is a reply, at the
// latest when ctx is done.
func (l *lane) Process(ctx context.Context, cmd goredis.Cmder) error {
	l.mu.Lock()
	if l.flights < maxFlights || l.closed { // a client that is closed says so
		l.flights++
		l.mu.Unlock()
		defer l.land()
		return l.client.Process(ctx, cmd)
	}
	p := &pending{cmd: cmd, done: make(chan struct{})}
	l.waiting = append(l.waiting, p)
	l.mu.Unlock()
	select {
	case <-p.done:
		return cmd.Err()
	case <-ctx.Done():
		l.leave(p)
		return ctx.Err()
	}
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
	if len(l.waiting) == 0 {
		l.flights--
		return
	}
	n := min(len(l.waiting), maxShared)
	share := slices.Clone(l.waiting[:n])
	l.waiting = slices.Delete(l.waiting, 0, n)
	l.shared.Go(func() {
		defer l.land()
		l.fly(share)
	})
}

// fly sends calls in one round trip. It ends by the client's time-outs, since the
// callers have different deadlines.
func (l *lane) fly(share []*pending) {
	ctx := context.Background()
	_, _ = l.client.Pipelined(ctx, func(pipe goredis.Pipeliner) error { // each call has its own error
		for _, p := range share {
			_ = pipe.Process(ctx, p.cmd)
		}
		return nil
	})
	for _, p := range share {
		close(p.done)
	}
}

// close fails those who wait, and those to come.
func (l *lane) close() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.closed = true
	for _, p := range l.waiting {
		p.cmd.SetErr(goredis.ErrClosed)
		close(p.done)
	}
	l.waiting = nil
}

// lanes are those of all partitions.
type lanes []*lane

// newLanes makes one lane for all keys of a single server. In a cluster each
// partition has its own.
func newLanes(client goredis.UniversalClient) lanes {
	n := partitions
	if _, single := client.(*goredis.Client); single {
		n = 1
	}
	list := make(lanes, n)
	for i := range list {
		list[i] = &lane{client: client}
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
