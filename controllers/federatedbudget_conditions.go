package controllers

import (
	"fmt"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/weir-dev/weir/api/v1alpha1"
	"github.com/weir-dev/weir/internal/controlplane/audit"
	"github.com/weir-dev/weir/internal/controlplane/audit/budgetaudit"
	"github.com/weir-dev/weir/internal/controlplane/condition"
	"github.com/weir-dev/weir/pkg/federation/ledger"
)

// budgetConditionsOf returns every condition of the budget. A budget that is not
// accepted has no other.
func budgetConditionsOf(s *budgetScope) []metav1.Condition {
	const kind = v1alpha1.AcceptedCondition
	switch {
	case s.invalid != nil:
		return []metav1.Condition{condition.False(kind, v1alpha1.InvalidReason, s.invalid.Error())}
	case s.denied != nil:
		return []metav1.Condition{condition.False(kind, v1alpha1.IDNotPermittedReason, "spec.id: "+s.denied.Error())}
	case s.conflict != nil:
		return []metav1.Condition{condition.False(kind, v1alpha1.ConflictedReason, s.conflict.Error())}
	case !s.member():
		return []metav1.Condition{condition.False(kind, v1alpha1.NotAMemberReason, s.stranger())}
	}
	return []metav1.Condition{
		condition.True(kind, v1alpha1.AcceptedReason, strings.Join(append([]string{"the budget is valid"}, s.doubts...), "; ")),
		connected(s),
		learning(s),
		budgetWithinBound(s),
	}
}

// learning is True while the ledger cannot know what is granted of the open window.
func learning(s *budgetScope) metav1.Condition {
	const kind = v1alpha1.LearningCondition
	switch until := s.observation.Learning; {
	case !s.connected():
		return condition.Unknown(kind, v1alpha1.StartingReason, "the ledger cannot be read: see condition Connected")
	case !s.learning():
		return condition.False(kind, v1alpha1.LearnedReason, "the ledger knows what it granted of the open window")
	case s.observation.Behind:
		return condition.True(kind, v1alpha1.BehindReason,
			"the clock of the coordinator went back, so nothing is granted until it shows what it showed before, about "+moment(until)+": correct that clock")
	default:
		return condition.True(kind, v1alpha1.AmnesiaReason,
			"the ledger's memory is younger than the open window, so nothing more is granted of that one: it serves from the next window on, which begins about "+moment(until)+s.unconfirmed())
	}
}

// unconfirmed returns what lets a new budget serve before its next window, "" for nothing.
func (s *budgetScope) unconfirmed() string {
	l := s.ledger()
	if l == nil || len(l.Vouches) == 0 {
		return ""
	}
	missing := slices.DeleteFunc(s.enforced.Params.Names(), func(name string) bool {
		return slices.ContainsFunc(l.Vouches, func(v ledger.Vouch) bool { return v.Member == name })
	})
	if len(missing) == 0 {
		return ", or as soon as all members list the same members"
	}
	return ", or as soon as " + strings.Join(missing, ", ") + " confirmed, too, that the budget is new"
}

// budgetWithinBound reports whether what all clusters admitted stayed within the limit.
func budgetWithinBound(s *budgetScope) metav1.Condition {
	const kind = v1alpha1.WithinBoundCondition
	f := s.observation.Figures
	switch {
	case !s.running():
		return condition.Unknown(kind, v1alpha1.StartingReason, notMeasured)
	case f.Verdict == audit.Exceeded:
		return condition.False(kind, v1alpha1.BoundExceededReason, s.exceeded(f.Overshoot))
	case !s.connected() && f.Window == nil:
		return condition.Unknown(kind, v1alpha1.StartingReason, notMeasured)
	case !s.connected():
		return condition.Unknown(kind, v1alpha1.ReportsMissingReason,
			"what the other members report cannot be read while the coordinator does not answer: see condition Connected")
	}
	switch f.Verdict {
	case audit.ReportsMissing:
		return condition.Unknown(kind, v1alpha1.ReportsMissingReason,
			"these members took part in the last window and have not reported all that they admitted: "+nameSome(f.Silent))
	case audit.Measured:
		return condition.True(kind, v1alpha1.MeasuredReason, withinLimit(f.Overshoot))
	case audit.Starting:
		return condition.Unknown(kind, v1alpha1.StartingReason, notMeasured)
	default:
		return condition.Unknown(kind, v1alpha1.NoTrafficReason, "no member has reported a request")
	}
}

const notMeasured = "no window was measured yet since this controller took over or the budget changed"

// exceeded says by how much, when and why perhaps.
func (s *budgetScope) exceeded(o *budgetaudit.Overshoot) string {
	if o == nil {
		return "more was admitted than the limit allows"
	}
	return fmt.Sprintf("all members together admitted %d too many in the window that ended at %s; "+
		"make sure that rate.limit is the same in every cluster, and that the id %s is kept by one coordinator only",
		o.Worst, o.WorstEnd.UTC().Format(milliseconds), s.budget.Spec.ID)
}

func withinLimit(o *budgetaudit.Overshoot) string {
	if o == nil || o.Worst == 0 {
		return "no measured window exceeded the limit; worst overshoot 0"
	}
	return fmt.Sprintf("no measured window exceeded its bound; worst overshoot %d, in a window whose limit was lowered after more had been granted of it", o.Worst)
}

// How messages write instants: with milliseconds where windows are meant.
const milliseconds = "2006-01-02T15:04:05.000Z"

func moment(t time.Time) string { return t.UTC().Format(time.RFC3339) }
