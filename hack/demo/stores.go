package main

import (
	"context"
	"fmt"

	"golang.org/x/sync/errgroup"

	"github.com/weir-dev/weir/api/v1alpha1"
	"github.com/weir-dev/weir/internal/testing/devcluster/servers"
)

// stores are the servers that the demo's policy may count in. One that is not
// installed is nil.
type stores struct {
	redis, postgres *servers.Server
}

// start starts what is installed; only the store that is needed has to be.
func (s *stores) start(ctx context.Context, logs string, needed v1alpha1.StoreType) error {
	var both errgroup.Group
	var noRedis, noPostgres error
	both.Go(func() error { s.redis, noRedis = servers.Redis(ctx, logs); return nil })
	both.Go(func() error { s.postgres, noPostgres = servers.Postgres(ctx, logs); return nil })
	_ = both.Wait() // the errors matter only for what is needed
	switch needed {
	case v1alpha1.RedisStoreType:
		return noRedis
	case v1alpha1.PostgresStoreType:
		return noPostgres
	default:
		return ctx.Err()
	}
}

func (s *stores) stop() {
	for _, server := range []*servers.Server{s.redis, s.postgres} {
		if server != nil {
			server.Kill()
		}
	}
}

// name is how the demo calls a store.
func (s *stores) name(of v1alpha1.StoreType) string {
	switch of {
	case v1alpha1.RedisStoreType:
		return "Redis at " + s.redis.Address
	case v1alpha1.PostgresStoreType:
		return "Postgres at " + s.postgres.Address
	default:
		return "the controller"
	}
}

// spec is spec.store, on one line of YAML.
func (s *stores) spec(of v1alpha1.StoreType) string {
	switch of {
	case v1alpha1.RedisStoreType:
		return fmt.Sprintf("{type: Redis, redis: {address: %q}}", s.redis.Address)
	case v1alpha1.PostgresStoreType:
		return fmt.Sprintf("{type: Postgres, postgres: {address: %q, database: %q, secretRef: {name: postgres}}}",
			s.postgres.Address, servers.PostgresDatabase)
	default:
		return "{type: Controller}"
	}
}
