package stores

import (
	"context"
	"sync"

	"github.com/weir-dev/weir/pkg/store/redis"
	"github.com/weir-dev/weir/pkg/twotier"
)

// A connection is an open Redis store, refreshed until it is closed.
type connection struct {
	store      *redis.Store
	gate       *twotier.Gate
	stop       context.CancelFunc
	refreshing sync.WaitGroup
}

func connect(address string) *connection {
	s := redis.Dial(address)
	ctx, stop := context.WithCancel(context.Background())
	c := &connection{store: s, gate: twotier.NewGate(s), stop: stop}
	c.refreshing.Go(func() { keepFresh(ctx, s) })
	return c
}

// close returns when the last call of the refreshing has ended, which closing the
// store cuts short.
func (c *connection) close() error {
	c.stop()
	err := c.store.Close()
	c.refreshing.Wait()
	return err
}
