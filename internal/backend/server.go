package backend

import (
	"context"
	"sync"

	"github.com/weir-dev/weir/pkg/concurrency"
	"github.com/weir-dev/weir/pkg/limiter"
	"github.com/weir-dev/weir/pkg/store"
)

// A Server is an open Backend that is kept up until it is closed.
type Server struct {
	Backend
	Calls

	// Version is that of the Secret it was opened with.
	Version string

	divider concurrency.Coordinator
	use     *usage
	stop    context.CancelFunc
	keeping sync.WaitGroup
}

// Keep keeps b up, which was opened with that version of its Secret. It does not wait for a
// connection. The caller closes the Server, and no longer b.
func Keep(b Backend, version string) *Server {
	ctx, stop := context.WithCancel(context.Background())
	s := &Server{Backend: b, Version: version, divider: b.Coordinator(), use: newUsage(), stop: stop}
	s.keeping.Go(func() { keepUp(ctx, b, s.use) })
	return s
}

// Coordinator returns that of the Backend, always the same.
func (s *Server) Coordinator() concurrency.Coordinator { return s.divider }

// Apply asks the Backend.
func (s *Server) Apply(ctx context.Context, key store.Key, p limiter.Params, c limiter.Command) (limiter.Result, error) {
	r, err := s.Backend.Apply(ctx, key, p, c)
	if err == nil {
		s.use.note(c, r)
	}
	return r, err //nolint:wrapcheck // it is the Backend's
}

// Close returns when the last call of the upkeep has ended, which closing the
// Backend cuts short.
func (s *Server) Close() error {
	s.stop()
	err := s.Backend.Close()
	s.keeping.Wait()
	return err //nolint:wrapcheck // it is the Backend's
}

// Retire closes the Server after its last call.
func (s *Server) Retire() error {
	s.Await()
	return s.Close()
}
