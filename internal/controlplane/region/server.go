package region

import (
	"context"
	"fmt"

	"github.com/weir-dev/weir/internal/backend"
	"github.com/weir-dev/weir/pkg/federation"
	"github.com/weir-dev/weir/pkg/federation/coordinator/counters"
	postgresbudget "github.com/weir-dev/weir/pkg/federation/coordinator/postgres"
	redisbudget "github.com/weir-dev/weir/pkg/federation/coordinator/redis"
	redisescrow "github.com/weir-dev/weir/pkg/federation/escrow/redis"
	"github.com/weir-dev/weir/pkg/federation/keys"
	"github.com/weir-dev/weir/pkg/federation/ledger"
	"github.com/weir-dev/weir/pkg/policy"
)

// A Server is an open store in which budgets are kept, or what a cluster was granted of
// them.
type Server struct {
	Ledger Coordinator
	Escrow federation.Escrow // nil where that is not possible
	Close  func() error      // nothing is called afterwards
}

// inStore keeps budgets in a store, and the values of those with a key in its counters.
type inStore struct {
	federation.Coordinator
	values *counters.Coordinator
}

// ApplyKeys implements keyed.Coordinator.
func (s inStore) ApplyKeys(ctx context.Context, id string, p ledger.Params, r keys.Request) (keys.Reply, error) {
	return s.values.ApplyKeys(ctx, id, p, r)
}

// openServer opens a store. It does not wait for a connection. The error names the value
// of the Secret that is wrong, and the cure.
func openServer(by backend.Opener, of policy.Store, secret map[string][]byte) (Server, error) {
	switch of.Type {
	case policy.RedisStore:
		s, err := by.Redis(of, secret)
		if err != nil {
			return Server{}, err
		}
		return Server{Ledger: inStore{redisbudget.New(s), counters.New(s)}, Escrow: redisescrow.New(s), Close: s.Close}, nil
	case policy.PostgresStore:
		s, err := by.Postgres(of, secret)
		if err != nil {
			return Server{}, err
		}
		return Server{Ledger: inStore{postgresbudget.New(s), counters.New(s)}, Close: s.Close}, nil
	default:
		return Server{}, fmt.Errorf("store type %q keeps no budgets: name Redis or Postgres", of.Type)
	}
}
