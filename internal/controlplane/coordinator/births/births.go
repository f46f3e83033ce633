package births

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/weir-dev/weir/pkg/limiter"
	"github.com/weir-dev/weir/pkg/policy"
	"github.com/weir-dev/weir/pkg/store"
)

// SweepInterval is how often Sweep should be called.
const SweepInterval = 10 * time.Minute

// A Config is what the births of a term work with.
type Config struct {
	Store Store
	Clock func() limiter.Instant
	// Facts asks a store about itself, and blocks until it answers.
	Facts func(ctx context.Context, of policy.Store) (store.Facts, error)
	// First says that nobody led before.
	First bool
	// Moved ends the records of a limit that the controller's store keeps durable counters
	// of, before they are kept in another way; nil when there are none.
	Moved func(ctx context.Context, limit store.Scope) error
	// Created is called with each limit that is put in force for the first time; nil for nobody.
	Created func(limit store.Scope)
}

// Births are those that one term of leadership knows. Their methods are safe for concurrent use.
type Births struct {
	Config

	mu     sync.Mutex
	loaded bool
	shards [Shards]shard
	held   map[string]time.Time // since when new limits are pending, by name
}

// New returns the births of a term, which are read when they are needed.
func New(c Config) *Births { return &Births{Config: c, held: map[string]time.Time{}} }

// A HeldError says that limits are pending, and why.
type HeldError struct{ causes []error }

// Error names each limit and what it waits for.
func (e *HeldError) Error() string { return errors.Join(e.causes...).Error() }

// Fill sets in which memories the limits of the snapshot were born, and writes that down
// of those that are new. Those that are to wait for their store are pending in the snapshot,
// and a *HeldError says so. After any other error nothing of the snapshot may be put in force.
// A nil *Births leaves the snapshot as it is.
func (b *Births) Fill(ctx context.Context, s *policy.Snapshot) error {
	if b == nil {
		return nil
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if err := b.load(ctx); err != nil {
		return fmt.Errorf("read when limits were first put in force: %w", err)
	}
	f := filling{Births: b, cluster: s.Cluster, known: map[policy.Store]answer{}, changed: map[int]bool{}}
	filled := make([]policy.Policy, 0, len(s.Policies))
	var held HeldError
	for _, p := range s.Policies {
		p.Limits = slices.Clone(p.Limits)
		waits, err := f.policy(ctx, &p)
		held.causes = append(held.causes, waits...)
		if err != nil {
			b.loaded = false
			return err
		}
		filled = append(filled, p)
	}
	for i := range f.changed {
		if err := b.save(ctx, i); err != nil {
			b.loaded = false // what was entered is not written down
			return fmt.Errorf("write down that limits are put in force: %w", err)
		}
	}
	s.Policies = filled
	if len(held.causes) > 0 {
		return &held
	}
	return nil
}

// Sweep notes which limits are gone, and drops those that no window looks back on. there are
// all limits that exist.
func (b *Births) Sweep(ctx context.Context, there map[store.Scope]struct{}) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if err := b.load(ctx); err != nil {
		return err
	}
	names := make(map[string]struct{}, len(there))
	for scope := range there {
		names[scope.String()] = struct{}{}
	}
	exists := func(name string) bool {
		scope, _, _ := strings.Cut(name, storeMark)
		_, is := names[scope]
		return is
	}
	for name := range b.held {
		if !exists(name) {
			delete(b.held, name)
		}
	}
	now := b.Clock()
	var errs []error
	for i := range b.shards {
		if !b.shards[i].sweep(exists, now) {
			continue
		}
		if err := b.save(ctx, i); err != nil {
			b.loaded = false
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}
