package keyed_test

import (
	"context"
	"errors"
	"strconv"
	"sync"
	"time"

	"github.com/weir-dev/weir/internal/testing/federationtest"
	"github.com/weir-dev/weir/pkg/federation/coordinator/kubernetes"
	"github.com/weir-dev/weir/pkg/federation/keyed"
	"github.com/weir-dev/weir/pkg/limiter"
)

// A shelf is a Journal in memory, and Births.
type shelf struct {
	mu      sync.Mutex
	records map[string]kubernetes.Record
	version int
	writes  int
}

func (s *shelf) Load(_ context.Context, id string) (kubernetes.Record, string, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	r, ok := s.records[id]
	if !ok {
		return r, "", kubernetes.ErrNotFound
	}
	return r, strconv.Itoa(s.version), nil
}

// Save takes a while, as a write to an API server does.
func (s *shelf) Save(ctx context.Context, id string, r kubernetes.Record, version string) (string, error) {
	if !federationtest.Wait(ctx, 5*time.Millisecond) {
		return "", ctx.Err()
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	present := ""
	if _, ok := s.records[id]; ok {
		present = strconv.Itoa(s.version)
	}
	if present != version {
		return "", &kubernetes.ConflictError{ID: id, Cause: errors.New("it has another version")}
	}
	s.version, s.writes = s.version+1, s.writes+1
	s.records[id] = r
	return strconv.Itoa(s.version), nil
}

// written returns how often a record was written.
func (s *shelf) written() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.writes
}

func (s *shelf) Known(context.Context, string, limiter.Micros) (bool, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.records) > 0, nil
}

func (s *shelf) Enter(context.Context, string, limiter.Micros) error { return nil }

// begin puts a hub that sets blocks aside in the place of the one that is there.
func (s *shelf) begin(h *federationtest.Hub) {
	h.ReplaceValues(func(keyed.Coordinator) keyed.Coordinator {
		return kubernetes.New(kubernetes.Options{Journal: s, Births: s, Clock: h.Now})
	})
}
