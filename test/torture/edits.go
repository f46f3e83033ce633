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
	if last := &s.limits[len(s.limits)-1]; programmed && last.version == version && last.settled.IsZero() {
		last.settled = time.Now()
	}
}

// edit changes the limit of a shop with short windows.
func (s *shop) edit(ctx context.Context, kube client.Client, to int64) error {
	if s.once > 0 || s.action != v1alpha1.DenyAction {
		return nil
	}
	began := time.Now()
	var p v1alpha1.RateLimitPolicy
	if err := kube.Get(ctx, client.ObjectKey{Namespace: s.name, Name: "checkout"}, &p); err != nil {
		return err
	}
	base := p.DeepCopy()
	p.Spec.Limits[0].Rates[0].Limit = to
	if err := kube.Patch(ctx, &p, client.MergeFrom(base)); err != nil {
		// No controller may be there to validate it; or it was made, and its answer lost.
		if err := kube.Get(ctx, client.ObjectKeyFromObject(&p), &p); err != nil || p.Generation == base.Generation {
			return err
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.limits = append(s.limits, limitOf{from: began, limit: to, version: p.Generation})
	return nil
}

// limitsIn returns the least and the most that the policy may have
// said in a span of time: an edit counts from when it was sent, and what it replaces for one window from
// when every sidecar enforced the edit.
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
