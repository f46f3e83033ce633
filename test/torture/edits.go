package main

import (
	"context"
	"slices"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/weir-dev/weir/api/v1alpha1"
)

// A limitOf is what the policy says from an instant on, until another is in force.
type limitOf struct {
	from    time.Time
	settled time.Time // when the status said that every sidecar enforces it; zero before
	limit   int64
	version int64 // of the policy's spec
}

// limit returns what the policy says now.
func (s *shop) limit() int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.limits[len(s.limits)-1].limit
}

// settle notes that a version of the policy is in force everywhere.
func (s *shop) settle(version int64, programmed bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if last := &s.limits[len(s.limits)-1]; programmed && last.version <= version && last.settled.IsZero() {
		last.settled = time.Now()
	}
}

// edits reports whether the limit of the policy may be edited.
func (t terms) edits() bool {
	return !t.drawn && t.window == window && t.action == v1alpha1.DenyAction
}

// edit changes the limit.
func (s *shop) edit(ctx context.Context, kube client.Client, to int64) error {
	began := time.Now()
	version, err := s.change(ctx, kube, func(spec *v1alpha1.RateLimitPolicySpec) { spec.Limits[0].Rates[0].Limit = to })
	if err != nil || version == 0 {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.limits = append(s.limits, limitOf{from: began, limit: to, version: version})
	return nil
}

// change edits the policy and returns the version that this makes, or 0 when no controller
// is there to validate it.
func (s *shop) change(ctx context.Context, kube client.Client, edit func(*v1alpha1.RateLimitPolicySpec)) (int64, error) {
	var p v1alpha1.RateLimitPolicy
	if err := kube.Get(ctx, client.ObjectKey{Namespace: s.name, Name: "checkout"}, &p); err != nil {
		return 0, err
	}
	base := p.DeepCopy()
	edit(&p.Spec)
	if err := kube.Patch(ctx, &p, client.MergeFrom(base)); err != nil {
		// It may have been made, and its answer lost.
		if err := kube.Get(ctx, client.ObjectKeyFromObject(&p), &p); err != nil || p.Generation == base.Generation {
			return 0, err
		}
	}
	return p.Generation, nil
}

// limitsIn returns the least and the most that the policy's limit may have been in a span of
// time. An edit counts from when it was sent, and the limit that it replaces for one window
// from when every sidecar enforced the edit.
func (s *shop) limitsIn(from, until time.Time) (least, most int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for i, l := range s.limits {
		replaced := slices.ContainsFunc(s.limits[i+1:], func(next limitOf) bool {
			return !next.settled.IsZero() && next.settled.Add(s.window).Before(from)
		})
		if l.from.Before(until) && !replaced {
			if least == 0 {
				least = l.limit
			}
			least, most = min(least, l.limit), max(most, l.limit)
		}
	}
	return least, most
}
