package stores

import (
	"context"
	"strings"
	"sync"

	"github.com/weir-dev/weir/pkg/policy"
	"github.com/weir-dev/weir/pkg/store/postgres"
	"github.com/weir-dev/weir/pkg/store/redis"
	"github.com/weir-dev/weir/pkg/twotier"
)

// A backend is a store as its package opens it.
type backend interface {
	twotier.Store
	upkept
	Close() error
}

// A server is an open backend, kept up until it is closed.
type server struct {
	backend
	version string       // of the secret it was opened with
	users   sync.RWMutex // read-locked by calls under way

	stop    context.CancelFunc
	keeping sync.WaitGroup
}

// dial opens a store. It does not wait for a connection.
func dial(of policy.Store, secret Secret) (*server, error) {
	b, err := open(of, secret)
	if err != nil {
		return nil, err
	}
	ctx, stop := context.WithCancel(context.Background())
	s := &server{backend: b, version: secret.Version, stop: stop}
	s.keeping.Go(func() { keepUp(ctx, b) })
	return s, nil
}

func open(of policy.Store, secret Secret) (backend, error) {
	encryption, err := secret.encryption(of.TLS)
	if err != nil {
		return nil, err
	}
	if of.Type == policy.PostgresStore {
		return postgres.Dial(postgres.Options{
			Address: of.Address, Database: of.Database,
			User: secret.text("username"), Password: secret.text("password"), TLS: encryption,
		})
	}
	o := redis.Options{
		Addresses: strings.Split(of.Address, ","), Cluster: of.Cluster, Sentinel: of.Sentinel,
		User: secret.text("username"), Password: secret.text("password"), TLS: encryption,
	}
	if of.Sentinel != "" { // the same secret may serve a store without Sentinels
		o.SentinelUser, o.SentinelPassword = secret.text("sentinel-username"), secret.text("sentinel-password")
	}
	return redis.Open(o)
}

// close returns when the last call of the upkeep has ended, which closing the
// backend cuts short.
func (s *server) close() error {
	s.stop()
	err := s.backend.Close()
	s.keeping.Wait()
	return err
}

// retire closes the server once nobody uses it.
func (s *server) retire() error {
	s.users.Lock()
	defer s.users.Unlock()
	return s.close()
}
