package fleet

import (
	"cmp"
	"context"
	"errors"
	"time"

	"github.com/weir-dev/weir/pkg/twotier"
)

// A move says that the leader at the end of a stream handed over to the next.
type move struct {
	from  uint64 // the number of the stream
	until time.Time
}

// ended notes that the present stream has ended, and whether its leader hands over. It comes
// before anybody fails by the stream: a request that did would find no leader lost yet, and begin
// a window on its local share that the leader has granted others.
func (c *Client) ended(err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if errors.Is(err, errGoodbye) {
		c.moving = c.moveNow()
	}
	c.unlink(cmp.Or(err, errEnded))
}

// moveNow returns what says so; c.mu is held.
func (c *Client) moveNow() move {
	return move{from: c.streams, until: time.Now().Add(twotier.MoveTime)}
}

// Moved implements twotier.Reconnecting.
func (c *Client) Moved(ctx context.Context, n uint64) bool {
	for {
		c.mu.Lock()
		moved, up := c.streams > n, c.up
		left := time.Until(c.moving.until)
		planned := c.moving.from == n && n > 0
		c.mu.Unlock()
		switch {
		case !planned:
			return false
		case moved:
			return true
		case left <= 0:
			return false
		}
		late := time.NewTimer(left)
		select {
		case <-up:
			late.Stop()
		case <-late.C:
		case <-ctx.Done():
			late.Stop()
			return false
		}
	}
}

// moves reports whether leases wait for the next leader.
func (c *Client) moves() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return time.Now().Before(c.moving.until)
}
