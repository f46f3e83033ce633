package fleet

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/weir-dev/weir/internal/fleetpb"
	"github.com/weir-dev/weir/pkg/concurrency"
	"github.com/weir-dev/weir/pkg/concurrency/pool"
	"github.com/weir-dev/weir/pkg/limiter"
)

// A coordinator is the leading controller, as it divides pools.
type coordinator struct{ client *Client }

// Coordinator returns the coordinator of the pools that the controller divides. The
// controller knows the holder by the stream.
func (c *Client) Coordinator() concurrency.Coordinator { return coordinator{c} }

// Apply beats to the leading controller. While there is no stream a beat waits for one,
// since the first over a new stream gets a holder back to work. A Leave does not wait:
// the share expires as well. Terms of pools are not those of leaders, so it is the guard
// that refuses lower ones.
func (c coordinator) Apply(ctx context.Context, key pool.Key, p pool.Params, cmd pool.Command) (pool.Grant, error) {
	l, err := c.client.current()
	if l == nil && cmd.Op != pool.Leave {
		l, err = c.client.awaitLink(ctx)
	}
	if l == nil {
		return pool.Grant{}, c.client.unavailable(err)
	}
	id := c.client.requests.Add(1)
	share, err := ask(ctx, l, l.beats, l.shares, id, beatMessage(id, key, p, cmd))
	switch {
	case err != nil:
		return pool.Grant{}, c.client.unavailable(err)
	case share.GetDefect():
		return pool.Grant{}, fmt.Errorf("the controller refuses the beat: %s", share.GetError())
	case share.GetError() != "":
		return pool.Grant{}, c.client.unavailable(errors.New(share.GetError()))
	}
	return grantOf(share), nil
}

// awaitLink returns the link as soon as there is one. Before ctx is done it gives up, so
// that the caller still hears why there is none.
func (c *Client) awaitLink(ctx context.Context) (*link, error) {
	var late <-chan time.Time
	if deadline, ok := ctx.Deadline(); ok {
		left := time.Until(deadline)
		late = time.After(left - left/8)
	}
	for {
		l, up, err := c.expect()
		if l != nil {
			return l, nil
		}
		select {
		case <-up:
		case <-late:
			return nil, err
		case <-ctx.Done():
			return nil, err
		}
	}
}

func beatMessage(id uint64, key pool.Key, p pool.Params, c pool.Command) *fleetpb.FromHolder {
	return &fleetpb.FromHolder{Message: &fleetpb.FromHolder_Heartbeat{Heartbeat: &fleetpb.Heartbeat{
		Id:        id,
		Namespace: key.Namespace, Pool: key.Name, Generation: p.Generation,
		Op: int32(c.Op), Seq: c.Seq, Term: c.Term, Applied: c.Applied, Held: c.Held,
		InFlight: c.InFlight, Peak: c.Peak, Limit: c.Limit,
	}}}
}

func grantOf(s *fleetpb.Share) pool.Grant {
	return pool.Grant{
		Seq: s.GetSeq(), Term: s.GetTerm(), Generation: s.GetGeneration(),
		Share: s.GetShare(), TTL: limiter.Micros(s.GetTtlMicros()),
		Limit: s.GetLimit(), Holders: s.GetHolders(), Granted: s.GetGranted(), InFlight: s.GetInFlight(),
		Occupied: s.GetOccupied(), Bound: s.GetBound(), Quarantined: limiter.Micros(s.GetQuarantinedMicros()),
	}
}
