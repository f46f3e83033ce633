package region

import (
	"fmt"

	"github.com/weir-dev/weir/internal/backend"
	"github.com/weir-dev/weir/pkg/federation"
	postgresbudget "github.com/weir-dev/weir/pkg/federation/coordinator/postgres"
	redisbudget "github.com/weir-dev/weir/pkg/federation/coordinator/redis"
	redisescrow "github.com/weir-dev/weir/pkg/federation/escrow/redis"
	"github.com/weir-dev/weir/pkg/policy"
)

// A Server is an open store in which budgets are kept, or what a cluster was granted of
// them.
type Server struct {
	Ledger federation.Coordinator
	Escrow federation.Escrow // nil where that is not possible
	Close  func() error      // nothing is called afterwards
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
		return Server{Ledger: redisbudget.New(s), Escrow: redisescrow.New(s), Close: s.Close}, nil
	case policy.PostgresStore:
		s, err := by.Postgres(of, secret)
		if err != nil {
			return Server{}, err
		}
		return Server{Ledger: postgresbudget.New(s), Close: s.Close}, nil
	default:
		return Server{}, fmt.Errorf("store type %q keeps no budgets: name Redis or Postgres", of.Type)
	}
}
