package redis

import (
	"context"
	"strings"
	"sync/atomic"

	goredis "github.com/redis/go-redis/v9"

	"github.com/weir-dev/weir/pkg/store"
)

// resetAtOnce is how many keys one step of a reset looks at.
const resetAtOnce = 1000

// globs are the characters that a pattern of Redis gives a meaning to.
var globs = strings.NewReplacer(`\`, `\\`, `*`, `\*`, `?`, `\?`, `[`, `\[`, `]`, `\]`)

// Reset drops all counters of a limit, or the one of hash, and returns how many there were.
// Each begins with a full limit, and units in hand stay good. A window that the memory may
// have forgotten stays refused. For a whole limit it looks at every key of the server, in
// steps of a thousand. The error is that of Apply; some may have been dropped then.
func (s *Store) Reset(ctx context.Context, scope store.Scope, hash *string) (int, error) {
	if hash != nil {
		counter, _ := counterKeyOf(store.Key{Scope: scope, Hash: *hash})
		n, err := s.client.Unlink(ctx, counter).Result()
		if err != nil {
			return 0, s.explain(err)
		}
		return int(n), nil
	}
	var dropped atomic.Int64
	pattern := "weir:{*}:" + globs.Replace(scope.String()) + "/*"
	err := s.eachPrimary(ctx, func(ctx context.Context, node goredis.Cmdable) error {
		for cursor := uint64(0); ; {
			keys, next, err := node.Scan(ctx, cursor, pattern, resetAtOnce).Result()
			if err != nil {
				return err
			}
			for _, key := range keys { // one by one: in a cluster they are of several slots
				n, err := node.Unlink(ctx, key).Result()
				if err != nil {
					return err
				}
				dropped.Add(n)
			}
			if cursor = next; cursor == 0 {
				return nil
			}
		}
	})
	if err != nil {
		return int(dropped.Load()), s.explain(err)
	}
	return int(dropped.Load()), nil
}
