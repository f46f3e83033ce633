package main

import (
	"context"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weir-dev/weir/internal/sidecar/enforce"
	"github.com/weir-dev/weir/pkg/limiter"
	"github.com/weir-dev/weir/pkg/policy"
	"github.com/weir-dev/weir/pkg/store"
	"github.com/weir-dev/weir/pkg/store/memory"
	"github.com/weir-dev/weir/pkg/twotier"
)

// A silentStore answers nothing before an instant, as a leader that is busy.
type silentStore struct {
	*memory.Store
	until time.Time
}

func (s *silentStore) Apply(ctx context.Context, k store.Key, p limiter.Params, c limiter.Command) (limiter.Result, error) {
	if time.Now().Before(s.until) {
		<-ctx.Done()
		return limiter.Result{}, &store.UnavailableError{Store: "the leader", Cause: ctx.Err()}
	}
	return s.Store.Apply(ctx, k, p, c)
}

func (s *silentStore) Open(policy.Store) (twotier.Store, error) { return s, nil }

func (s *silentStore) Budget() twotier.Store { return s }

func (*silentStore) Retain(map[policy.Store]bool) {}

// TestAdmissionsNameAWindowOnceTheClockWasRead: a sidecar that was never answered is on its
// local share, and names none.
func TestAdmissionsNameAWindowOnceTheClockWasRead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		leader := &silentStore{until: began.Add(2 * time.Second), Store: memory.New(memory.Options{
			Clock: func() limiter.Instant { return limiter.Instant(time.Now().UnixMicro()) }, First: true,
		})}
		s := &sidecar{enforcer: enforce.New(enforce.Config{
			Namespace: shopSpace, Mode: enforce.Enforce, Log: slog.New(slog.DiscardHandler), Stores: leader,
			NewLimiter: func(c twotier.Config, st twotier.Store) (enforce.Limiter, error) { return twotier.New(c, st) },
		})}
		set, err := policy.Compile(policy.Snapshot{Cluster: "test", Policies: []policy.Policy{{
			Namespace: shopSpace, Name: "limit", Generation: 1, Mode: policy.Enforce,
			Store: policy.Store{Type: policy.ControllerStore}, OnStoreUnavailable: policy.LocalShare,
			Consistency: policy.Consistency{Mode: policy.Strict},
			Limits:      []policy.Limit{{Name: "all", Rates: []limiter.Rate{{Limit: 100, Window: windowLength * limiter.Second}}}},
		}}})
		if err != nil {
			t.Fatal(err)
		}
		if err := s.enforcer.Apply(set, "1"); err != nil {
			t.Fatal(err)
		}
		defer s.enforcer.Close(t.Context())
		s.enforcer.SetHolders(shopSpace, "limit", 2)

		if d, err := s.check(t.Context(), "limit"); err != nil || !d.Allowed || d.Windows != nil {
			t.Errorf("before the clock is read: %+v, %v, want an admission of no window", d, err)
		}
		f := &sidecars{all: []*sidecar{s}}
		if err := f.readClocks(t.Context(), "limit"); err != nil {
			t.Fatal(err)
		}
		if took := time.Since(began); took < 2*time.Second {
			t.Errorf("read after %s, when the store does not answer", took)
		}
		if d, err := s.check(t.Context(), "limit"); err != nil || !d.Allowed || d.Windows == nil {
			t.Errorf("after the clock was read: %+v, %v, want an admission of a window", d, err)
		}
	})
}
