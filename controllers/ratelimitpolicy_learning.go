package controllers

import (
	"fmt"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/weir-dev/weir/api/v1alpha1"
	"github.com/weir-dev/weir/internal/controlplane/condition"
	"github.com/weir-dev/weir/internal/controlplane/coordinator"
	"github.com/weir-dev/weir/pkg/limiter"
	"github.com/weir-dev/weir/pkg/policy"
)

// withholding is a limit whose store grants nothing in the open windows.
type withholding struct {
	limit  string
	reason limiter.Reason // Amnesia or ClockBehind
	until  time.Time
}

// unsteady is how far the end of a withheld grant may move from one report to the next:
// pods report the time that is left, and reports are delayed.
const unsteady = 5 * time.Second

// learns takes over which limits of the spec grant nothing now, ordered by name.
func (s *scope) learns(said map[string]coordinator.Learning) {
	s.learning = nil
	for limit, l := range said {
		i := slices.IndexFunc(s.policy.Spec.Limits, func(spec v1alpha1.Limit) bool { return spec.Name == limit })
		if i < 0 || !l.Until.After(s.now) {
			continue
		}
		until := l.Until.Add(time.Second - time.Nanosecond).Truncate(time.Second) // not too early
		for _, had := range s.policy.Status.Limits {
			if had.Name == limit && had.LearningUntil != nil && until.Sub(had.LearningUntil.Time).Abs() <= unsteady {
				until = had.LearningUntil.Time
			}
		}
		s.learning = append(s.learning, withholding{limit, l.Reason, until})
	}
	slices.SortFunc(s.learning, func(a, b withholding) int { return strings.Compare(a.limit, b.limit) })
}

// learningUntil returns when the limit grants again, nil while it grants.
func (s *scope) learningUntil(limit string) *metav1.Time {
	for _, l := range s.learning {
		if l.limit == limit {
			return &metav1.Time{Time: l.until}
		}
	}
	return nil
}

// learningCondition is True while a limit grants nothing because its store cannot know
// what it granted before.
func learningCondition(s *scope) metav1.Condition {
	const kind = v1alpha1.LearningCondition
	all := s.learning
	switch {
	case len(all) == 0 && len(s.observation.Sessions) == 0:
		return condition.Unknown(kind, v1alpha1.StartingReason, "no sidecar is connected that could be refused")
	case len(all) == 0:
		return condition.False(kind, v1alpha1.LearnedReason, "no limit is refused by a store that may have forgotten what it granted")
	}
	var forgot, behind []withholding
	for _, l := range all {
		if l.reason == limiter.ClockBehind {
			behind = append(behind, l)
		} else {
			forgot = append(forgot, l)
		}
	}
	if len(forgot) == 0 {
		return condition.True(kind, v1alpha1.BehindReason,
			"the clock of the store went back, and nothing is granted until it shows what it showed before: "+untilOf(behind)+"; set the clock of the store right")
	}
	message := "the store may have forgotten what it granted of the open windows, and grants no more of them: " + untilOf(forgot) + s.cureOf(forgot)
	if len(behind) > 0 {
		message += "; its clock went back too: " + untilOf(behind)
	}
	return condition.True(kind, v1alpha1.AmnesiaReason, message)
}

func untilOf(all []withholding) string {
	var said []string
	for _, l := range all {
		said = append(said, fmt.Sprintf("limit %s until %s", l.limit, moment(l.until)))
	}
	return nameSome(said)
}

// cureOf says how to end it sooner, and what that costs, or how to keep it from happening
// again.
func (s *scope) cureOf(forgot []withholding) string {
	durable := slices.ContainsFunc(forgot, func(l withholding) bool { return s.retention(l.limit).Durable })
	switch {
	case durable && !s.move.remote():
		return "; set the limit back with the annotation weir.dev/reset to go on at once, which may admit one more limit"
	case durable:
		return "; set spec.store.onMemoryLoss to Resume to go on at once with the counts that are left, which may admit one more limit"
	}
	return "; set spec.store.memory to Durable so that counters outlive a restart of the store, as far as it persists"
}

// retention returns how the store keeps the counters of a limit.
func (s *scope) retention(limit string) limiter.Retention {
	i := slices.IndexFunc(s.enforced.Limits, func(l policy.Limit) bool { return l.Name == limit })
	if i < 0 {
		return limiter.Retention{}
	}
	return s.enforced.Limits[i].Retention
}
