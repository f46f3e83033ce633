package stores

import (
	"context"

	"github.com/weir-dev/weir/pkg/concurrency/pool"
	"github.com/weir-dev/weir/pkg/store"
)

// dividing is a connection as it divides concurrency pools.
type dividing struct{ *connection }

// Apply asks the server that was opened last, and fails at once while none is.
func (d dividing) Apply(ctx context.Context, key pool.Key, p pool.Params, c pool.Command) (pool.Grant, error) {
	s, err := d.enter()
	if err != nil {
		return pool.Grant{}, &store.UnavailableError{Store: nameOf(d.of), Cause: err}
	}
	defer s.users.RUnlock()
	return s.divider.Apply(ctx, key, p, c)
}
