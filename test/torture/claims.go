package main

import (
	"context"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/weir-dev/weir/api/v1alpha1"
)

// A claim is what the status of a policy says from an instant on.
type claim struct {
	from       time.Time
	programmed bool
	within     string // status and reason of the condition WithinBound
	message    string // of that when it is False
	bound      int64  // −1 for none
	worst      int64  // −1 for none
}

// look notes what the policy's status says, when it is something new.
func (s *shop) look(ctx context.Context, kube client.Client) {
	began := time.Now()
	var p v1alpha1.RateLimitPolicy
	if err := kube.Get(ctx, client.ObjectKey{Namespace: s.name, Name: "checkout"}, &p); err != nil {
		return // the API server may be away
	}
	s.sits(p.Status.Store, s.looked, time.Now())
	s.looked = began
	s.settle(p.Generation, meta.IsStatusConditionTrue(p.Status.Conditions, v1alpha1.ProgrammedCondition) && p.Status.ObservedGeneration == p.Generation)
	c := claim{
		from: time.Now(), programmed: meta.IsStatusConditionTrue(p.Status.Conditions, v1alpha1.ProgrammedCondition) &&
			p.Status.ObservedGeneration == p.Generation,
		bound: -1, worst: -1,
	}
	if within := meta.FindStatusCondition(p.Status.Conditions, v1alpha1.WithinBoundCondition); within != nil {
		c.within = string(within.Status) + " " + within.Reason
		if within.Status == metav1.ConditionFalse {
			c.message = within.Message
		}
	}
	if len(p.Status.Limits) > 0 {
		if o := p.Status.Limits[0].Overshoot; o != nil {
			if o.Bound != nil {
				c.bound = *o.Bound
			}
			if o.Worst != nil {
				c.worst = *o.Worst
			}
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if n := len(s.claims); n > 0 {
		last := s.claims[n-1]
		last.from = c.from
		if last == c {
			return
		}
	}
	s.claims = append(s.claims, c)
}

// newest returns the last claim.
func (s *shop) newest() claim {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.claims) == 0 {
		return claim{bound: -1, worst: -1}
	}
	return s.claims[len(s.claims)-1]
}
