package redis

import (
	"context"
	"time"

	goredis "github.com/redis/go-redis/v9"

	"github.com/weir-dev/weir/pkg/store/lane"
)

// A sender is the lane of one server: many callers cost it mostly the handling of their
// packets. Commands that the script of batches decides share one call of it, too.
type sender struct {
	*lane.Lane[*pending]

	client goredis.UniversalClient
	batch  script
	ends   string // key of the ends of what batch makes
}

var _ processor = (*sender)(nil)

// A pending is a call that waits for its reply: a command as it is sent, or one of a
// batch.
type pending struct {
	cmd goredis.Cmder
	ask *ask // nil for a command that is sent as it is
}

// Process sends cmd, alone or with others. It returns when there is a reply, at the
// latest when ctx is done.
func (s *sender) Process(ctx context.Context, cmd goredis.Cmder) error {
	if err := s.Send(ctx, &pending{cmd: cmd}); err != nil {
		return err
	}
	return cmd.Err()
}

// decide is Process for one of a batch.
func (s *sender) decide(ctx context.Context, a *ask) error {
	if err := s.Send(ctx, &pending{ask: a}); err != nil {
		return err
	}
	return a.err
}

// fly sends calls in one round trip, two after the server lost the script of batches.
// Each has its own error.
func (s *sender) fly(ctx context.Context, share []*pending) {
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
		s.carry(ctx, cmds)
		return
	}
	keys, args := batchOf(asks, s.ends)
	batch := newCall(ctx, "evalsha", s.batch.sha, keys, args)
	s.carry(ctx, append(cmds, batch))
	if goredis.HasErrorPrefix(batch.Err(), "NOSCRIPT") {
		batch = newCall(ctx, "eval", s.batch.text, keys, args)
		s.carry(ctx, []goredis.Cmder{batch})
	}
	answer(asks, batch.Cmd)
}

// carry sends commands in one round trip.
func (s *sender) carry(ctx context.Context, cmds []goredis.Cmder) {
	if len(cmds) == 1 {
		_ = s.client.Process(ctx, cmds[0]) // it has its error
		return
	}
	_, _ = s.client.Pipelined(ctx, func(pipe goredis.Pipeliner) error {
		for _, cmd := range cmds {
			_ = pipe.Process(ctx, cmd)
		}
		return nil
	})
}

// setPatience lets a round trip go on for that long before another one begins beside it.
func (s *sender) setPatience(patience time.Duration) { s.Lane = lane.New(patience, s.fly) }

// lanes are those of all partitions.
type lanes []*sender

// newLanes makes one lane for all keys of a single server. In a cluster each
// partition has its own.
func newLanes(client goredis.UniversalClient, batch script) lanes {
	n := partitions
	if _, single := client.(*goredis.Client); single {
		n = 1
	}
	list := make(lanes, n)
	for i := range list {
		list[i] = &sender{client: client, batch: batch, ends: endsKeys[i]}
		list[i].setPatience(lane.Patience)
	}
	if n == 1 {
		list[0].ends = commonEnds
	}
	return list
}

func (ls lanes) of(partition uint32) *sender { return ls[int(partition)%len(ls)] }

// close closes the client, which cuts short what is under way, and returns when
// nothing that was shared is.
func (ls lanes) close(client goredis.UniversalClient) error {
	for _, s := range ls {
		s.Close()
	}
	err := client.Close()
	for _, s := range ls {
		s.Wait()
	}
	return err
}
