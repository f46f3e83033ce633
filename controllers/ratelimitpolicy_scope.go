package controllers

import (
	"slices"
	"time"

	"k8s.io/utils/ptr"

	"github.com/weir-dev/weir/api/v1alpha1"
	"github.com/weir-dev/weir/internal/controlplane/audit"
	"github.com/weir-dev/weir/internal/controlplane/coordinator"
	"github.com/weir-dev/weir/internal/controlplane/translate"
	"github.com/weir-dev/weir/pkg/policy"
	"github.com/weir-dev/weir/pkg/store"
)

// scope is all that one reconciliation of a policy knows. Everything that is
// said about the policy is a function of it.
type scope struct {
	policy        *v1alpha1.RateLimitPolicy
	invalid       error         // why the policy cannot be enforced; nil when it can
	unmet         error         // why a budget that it names cannot be drawn from; nil when all can
	budgets       []drawn       // that it draws from, by name
	doubts        []string      // why it may not do what was meant
	enforced      policy.Policy // as sidecars enforce it; of no use while it is not accepted
	pods          pods
	observation   coordinator.Observation
	learning      []withholding  // limits that stores grant nothing of, as sidecars report
	verifications []verification // of the policy's providers of tokens
	store         probed         // zero while the controller itself is the store
	move          move
	inherited     []string // limits whose worst overshoot an earlier leader measured
	now           time.Time

	enforcing *enforcement // of pods and observation, once enforcement was called
}

// probed is what the controller itself found out about the store that serves.
type probed struct {
	version string // of the credentials
	facts   store.Facts
	err     error
}

// judge notes what pods are to enforce, or what is wrong. All that can be wrong with a
// policy that is valid is a budget.
func (s *scope) judge(budgets translate.Budgets) {
	doubts, errs := translate.Validate(s.policy, budgets)
	if s.doubts, s.invalid = doubts, errs.ToAggregate(); len(errs) == 0 {
		s.enforced, s.unmet = translate.Policy(s.policy, budgets)
	}
}

// accepted reports whether pods are to enforce the policy as it is.
func (s *scope) accepted() bool { return s.invalid == nil && s.unmet == nil }

// observe takes over what the fleet reported. Figures of limits that the spec no longer
// has are left out. For those measured under another generation only the flow is kept:
// what its windows admitted says nothing about this one's.
func (s *scope) observe(o coordinator.Observation) {
	s.observation = o
	s.learns(o.Learning)
	s.observation.Limits, s.inherited = nil, nil
	for _, l := range o.Limits {
		if !slices.ContainsFunc(s.policy.Spec.Limits, func(spec v1alpha1.Limit) bool { return spec.Name == l.Limit }) {
			continue
		}
		if l.Generation != translate.Generation(s.policy) && l.Verdict != audit.NoTraffic {
			l.Verdict, l.Overshoot, l.UnderUtilization = audit.Starting, nil, nil
		}
		s.observation.Limits = append(s.observation.Limits, s.since(l))
	}
}

// before returns what was published of a limit's overshoot under this generation.
func (s *scope) before(limit string) *v1alpha1.Overshoot {
	if s.policy.Status.ObservedGeneration != s.policy.Generation {
		return nil
	}
	for _, l := range s.policy.Status.Limits {
		if l.Name == limit {
			return l.Overshoot
		}
	}
	return nil
}

// since adds to the figures what an earlier leader measured under this generation: none
// makes its worst smaller.
func (s *scope) since(l coordinator.LimitFigures) coordinator.LimitFigures {
	before := s.before(l.Limit)
	if before == nil || before.Worst == nil {
		return l
	}
	var o audit.Overshoot
	if l.Overshoot != nil {
		o = *l.Overshoot
	}
	if *before.Worst > o.Worst {
		o.Worst, o.WorstUnbounded = *before.Worst, false
		s.inherited = append(s.inherited, l.Limit)
		if before.WorstTime != nil {
			o.WorstEnd = before.WorstTime.Time
		}
	}
	o.Excess = max(o.Excess, ptr.Deref(before.Excess, 0))
	o.AtLeast = o.AtLeast || l.Overshoot == nil
	if o.Excess > 0 {
		l.Verdict = audit.Exceeded
	}
	l.Overshoot = &o
	return l
}

// unsettled reports whether responses report what requests of the limit cost, so that
// nothing bounds what a window admits.
func (s *scope) unsettled(limit string) bool {
	return slices.ContainsFunc(s.enforced.Limits, func(l policy.Limit) bool { return l.Name == limit && !l.Settled() })
}

// carry returns how many units a pod may carry into a window of the limit.
func (s *scope) carry(limit string) int64 {
	for _, l := range s.enforced.Limits {
		if l.Name == limit {
			return l.Carry(&s.enforced)
		}
	}
	return 0
}

// enforcement returns the pods that have to enforce the policy.
func (s *scope) enforcement() *enforcement {
	if s.enforcing == nil {
		s.enforcing = newEnforcement("policy", s.policy.Generation, translate.Generation(s.policy), s.pods, s.sessions(),
			func(p *coordinator.PolicySession) *coordinator.Session { return &p.Session })
		s.enforcing.checked = true
	}
	return s.enforcing
}

// sessions returns the session that speaks for each pod, by the pod's UID.
func (s *scope) sessions() map[string]*coordinator.PolicySession {
	return speaking(s.observation.Sessions, func(p *coordinator.PolicySession) *coordinator.Session { return &p.Session })
}
