package stores

import (
	"context"
	"sync"

	"github.com/weir-dev/weir/internal/backend"
	"github.com/weir-dev/weir/pkg/concurrency"
	"github.com/weir-dev/weir/pkg/limiter"
	"github.com/weir-dev/weir/pkg/policy"
	"github.com/weir-dev/weir/pkg/store"
)

// A server is an open backend, kept up until it is closed.
type server struct {
	backend.Backend
	backend.Calls

	divider concurrency.Coordinator
	version string // of the secret it was opened with

	use     *use
	stop    context.CancelFunc
	keeping sync.WaitGroup
}

// dial opens a store. It does not wait for a connection.
func dial(of policy.Store, secret Secret) (*server, error) {
	b, err := backend.Open(of, secret.Data)
	if err != nil {
		return nil, err
	}
	ctx, stop := context.WithCancel(context.Background())
	s := &server{Backend: b, divider: b.Coordinator(), version: secret.Version, use: newUse(), stop: stop}
	s.keeping.Go(func() { keepUp(ctx, b, s.use) })
	return s, nil
}

// Apply asks the backend.
func (s *server) Apply(ctx context.Context, key store.Key, p limiter.Params, c limiter.Command) (limiter.Result, error) {
	r, err := s.Backend.Apply(ctx, key, p, c)
	if err == nil {
		s.use.note(c, r)
	}
	return r, err //nolint:wrapcheck // it is the backend's
}

// close returns when the last call of the upkeep has ended, which closing the
// backend cuts short.
func (s *server) close() error {
	s.stop()
	err := s.Backend.Close()
	s.keeping.Wait()
	return err
}

// retire closes the server after its last call.
func (s *server) retire() error {
	s.Await()
	return s.close()
}
