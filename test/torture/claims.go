package main

import (
	"context"
	"fmt"
	"slices"
	"strconv"
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
	atLeast    bool   // the worst may be more
}

// look notes what the status of the policy says, or of the budget that it draws from.
func (s *shop) look(ctx context.Context, kube client.Client) {
	if s.drawn {
		s.lookAtBudget(ctx)
		return
	}
	began := time.Now()
	var p v1alpha1.RateLimitPolicy
	if err := kube.Get(ctx, client.ObjectKey{Namespace: s.name, Name: "checkout"}, &p); err != nil {
		return // the API server may be away
	}
	s.sits(p.Status.Store, s.looked, time.Now())
	s.looked = began
	s.settle(p.Generation, meta.IsStatusConditionTrue(p.Status.Conditions, v1alpha1.ProgrammedCondition) && p.Status.ObservedGeneration == p.Generation)
	var o *v1alpha1.Overshoot
	if len(p.Status.Limits) > 0 {
		o = p.Status.Limits[0].Overshoot
	}
	s.claim(claimOf(p.Status.Conditions, p.Status.ObservedGeneration == p.Generation, v1alpha1.ProgrammedCondition, o))
}

// claim notes what a status says when it is something new.
func (s *shop) claim(c claim) {
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

// limited returns what reached the application from a team since the status first said that
// all sidecars enforce the policy. Before that nothing is promised: docs/guarantees.md says
// that a new policy waits for a store that does not answer yet.
func (s *shop) limited(team string) []arrival {
	arrivals := s.of(team)
	s.mu.Lock()
	defer s.mu.Unlock()
	i := slices.IndexFunc(s.claims, func(c claim) bool { return c.programmed })
	if i < 0 {
		return nil
	}
	return slices.DeleteFunc(arrivals, func(a arrival) bool { return a.sent.Before(s.claims[i].from) })
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

// claimOf returns what a status says.
func claimOf(conditions []metav1.Condition, observed bool, ready string, o *v1alpha1.Overshoot) claim {
	c := claim{from: time.Now(), programmed: observed && meta.IsStatusConditionTrue(conditions, ready), bound: -1, worst: -1}
	if within := meta.FindStatusCondition(conditions, v1alpha1.WithinBoundCondition); within != nil {
		c.within = string(within.Status) + " " + within.Reason
		if within.Status == metav1.ConditionFalse {
			c.message = within.Message
		}
	}
	if o != nil && o.Bound != nil {
		c.bound = *o.Bound
	}
	if o != nil && o.Worst != nil {
		c.worst, c.atLeast = *o.Worst, o.Completeness == v1alpha1.AtLeast
	}
	return c
}

// worstText returns the worst overshoot as the status shows it.
func (c claim) worstText() string {
	if c.atLeast {
		return fmt.Sprintf("at least %d", c.worst)
	}
	return strconv.FormatInt(c.worst, 10)
}
