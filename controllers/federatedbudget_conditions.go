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
	"github.com/weir-dev/weir/internal/controlplane/budget"
	"github.com/weir-dev/weir/internal/controlplane/condition"
	"github.com/weir-dev/weir/pkg/federation/ledger"
	"github.com/weir-dev/weir/pkg/policy"
)

// budgetConditionsOf returns every condition of the budget.
func budgetConditionsOf(s *budgetScope) []metav1.Condition {
	switch {
	case s.invalid != nil:
		return rejected(v1alpha1.InvalidReason, s.invalid.Error())
	case s.denied != nil:
		return rejected(v1alpha1.IDNotPermittedReason, "spec.id: "+s.denied.Error())
	case s.conflict != nil:
		return rejected(v1alpha1.ConflictedReason, s.conflict.Error())
	case !s.member():
		return rejected(v1alpha1.NotAMemberReason, s.stranger())
	}
	rates := s.rates()
	reached := ofRates(rates, metav1.ConditionFalse, connected)
	all := []metav1.Condition{
		condition.True(v1alpha1.AcceptedCondition, v1alpha1.AcceptedReason, strings.Join(append([]string{"the budget is valid"}, s.doubts...), "; ")),
		reached,
		ofRates(rates, metav1.ConditionTrue, learning),
		ofRates(rates, metav1.ConditionFalse, budgetWithinBound),
		condition.Summary(v1alpha1.ReadyCondition, v1alpha1.ReadyReason, reached.Message, reached),
	}
	if slices.ContainsFunc(rates, func(s *budgetScope) bool { return s.observation.Keys.Full }) {
		all = append(all, budgetKeysFull())
	}
	return all
}

// budgetKeysFull says that clients are refused with others.
func budgetKeysFull() metav1.Condition {
	return condition.True(v1alpha1.KeysFullCondition, v1alpha1.NoRoomReason,
		"more values of the key were in demand in a window than maxKeys of the hub's object, so those that came later share limits, one for each 8 of maxKeys, until the window is over: "+
			"where clients choose the values, let the policies put a limit by ClientIP before it; otherwise raise key.maxKeys")
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
	case s.keyed() && s.enforced.Hub == nil && !s.keeps():
		return condition.Unknown(kind, v1alpha1.ReportsMissingReason,
			fmt.Sprintf("only a hub measures the values of a key, and %s keeps them: WithinBound of the policies is of this cluster", s.root()))
	case f.Verdict == audit.Exceeded:
		return condition.False(kind, v1alpha1.BoundExceededReason, s.exceeded(f.Overshoot))
	case !s.connected() && f.Window == nil:
		return condition.Unknown(kind, v1alpha1.StartingReason, notMeasured)
	case !s.connected():
		return condition.Unknown(kind, v1alpha1.ReportsMissingReason,
			"what the other members report cannot be read while the coordinator does not answer: see condition Connected")
	}
	if strangers := s.strangers(); len(strangers) > 0 {
		return condition.Unknown(kind, v1alpha1.ReportsMissingReason,
			fmt.Sprintf("these members draw from the budget without this rate, so what they admit is not counted: %s; make additionalRates the same in every cluster", nameSome(strangers)))
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
	return fmt.Sprintf("all members together admitted %d too many%s in the window that ended at %s; "+
		"make sure that %s is the same in every cluster, and that the id %s is kept by one coordinator only",
		o.Worst, s.ofValue(), o.WorstEnd.UTC().Format(milliseconds), s.limitField(), s.budget.Spec.ID)
}

// ofValue says that a figure is of one value of the key; it returns "" for a budget without a key.
func (s *budgetScope) ofValue() string {
	if s.keyed() {
		return " of a value of the key"
	}
	return ""
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

// connected reports whether the coordinator answers this cluster as a member. When it
// does not, the message says what is wrong, what happens meanwhile, and the cure.
func connected(s *budgetScope) metav1.Condition {
	const kind = v1alpha1.ConnectedCondition
	link := s.observation.Link
	switch {
	case !s.running():
		return condition.Unknown(kind, v1alpha1.StartingReason, "this controller has not begun to draw from the budget yet")
	case link.Problem == budget.Starting:
		return condition.Unknown(kind, v1alpha1.StartingReason, s.root()+" was not heard of yet")
	case link.Problem == "":
		return condition.True(kind, v1alpha1.ConnectedReason, s.answering()+s.differences()+s.certificate()+s.escrow())
	}
	said := s.trouble(link.Problem)
	message := said.wrong
	if link.Detail != "" {
		message += " (" + link.Detail + ")"
	}
	if !link.Since.IsZero() {
		message += ", since " + moment(link.Since)
	}
	return condition.False(kind, said.reason, message+"; meanwhile "+s.meanwhile()+"; "+said.cure+s.escrow())
}

// answering says which cluster keeps the budget.
func (s *budgetScope) answering() string {
	if s.keeps() {
		return "this cluster keeps the budget for all members"
	}
	return s.root() + " keeps the budget and grants this cluster its part"
}

// differences returns the difference of every rate.
func (s *budgetScope) differences() (all string) {
	for _, r := range s.rates() {
		all += r.difference()
	}
	return all
}

// difference says by what limit the coordinator counts when it is not that of this
// object. On the hub it is: a window that is open may still have the one before.
func (s *budgetScope) difference() string {
	l := s.ledger()
	if l == nil || l.Limit == 0 || l.Limit == s.enforced.Params.Limit || s.keeps() {
		return ""
	}
	own := s.rate(s.enforced.Params.Limit)
	if s.enforced.Hub != nil {
		return fmt.Sprintf("; it counts by a limit of %s, and this object says %s: what the hub's object says counts, so make %s here the same", s.rate(l.Limit), own, s.limitField())
	}
	return fmt.Sprintf("; the open window has a limit of %s, the smallest that a member named, and this object says %s: make %s the same in every cluster", s.rate(l.Limit), own, s.limitField())
}

// escrow says that the place that keeps what the cluster was granted is away.
func (s *budgetScope) escrow() string {
	if s.observation.EscrowError == "" {
		return ""
	}
	return fmt.Sprintf("; the escrow, %s at %s, does not answer (%s), so the leading controller keeps what it is granted in its memory meanwhile",
		s.enforced.Escrow.Type, s.enforced.Escrow.Address, s.observation.EscrowError)
}

// certificate says that the one by which this cluster is a member is not renewed although
// it is time, and the cure.
func (s *budgetScope) certificate() string {
	c := s.observation.Certificate
	if c.Problem == "" {
		return ""
	}
	return fmt.Sprintf("; this cluster's certificate ends at %s and is not renewed (%s): unless another try succeeds before, %s", moment(c.Ends), c.Problem, s.renew())
}

// meanwhile says what this cluster does while it is granted nothing.
func (s *budgetScope) meanwhile() string {
	switch slice := s.observation.Slice; {
	case s.enforced.OnCoordinatorOutage == policy.BudgetNominal && slice > 0:
		return fmt.Sprintf("this cluster admits %s, its slice, without asking (Nominal)", s.rate(slice))
	case s.enforced.OnCoordinatorOutage == policy.BudgetNominal:
		return "this cluster hands on what it was granted, then refuses: it has not been granted a slice yet (Nominal)"
	case s.enforced.OnCoordinatorOutage == policy.BudgetRegionalOnly:
		return "this cluster hands on what it leased ahead of the open window, then refuses (RegionalOnly)"
	}
	return "this cluster hands on what it was granted of the open window, then refuses (FailClosed)"
}

// trouble is a problem in words.
type trouble struct{ reason, wrong, cure string }

// trouble says what is wrong, and what to do about it.
func (s *budgetScope) trouble(p budget.Problem) trouble {
	root, self := s.root(), s.enforced.Member
	switch p {
	case budget.NoRoot:
		return trouble{v1alpha1.NoRootReason, root + " cannot keep the budget now", s.restore()}
	case budget.Unauthorized:
		return trouble{v1alpha1.UnauthorizedReason, root + " and this cluster do not accept each other's credentials", s.renew()}
	case budget.CertificateExpired:
		return trouble{v1alpha1.CertificateExpiredReason, fmt.Sprintf("a certificate between this cluster and %s is not valid any more", root), s.renew()}
	case budget.UnknownBudget:
		return trouble{
			v1alpha1.UnknownBudgetReason, fmt.Sprintf("%s keeps no budget with the id %s", root, s.budget.Spec.ID),
			"apply a FederatedBudget with this id, without spec.hub, in the hub's cluster, or correct spec.hub.endpoint",
		}
	case budget.UnknownMember:
		return trouble{
			v1alpha1.UnknownMemberReason, fmt.Sprintf("%s keeps the budget, and lists no member %s", root, self),
			fmt.Sprintf("add %s to spec.members of the FederatedBudget there", self),
		}
	case budget.Mismatched:
		return trouble{
			v1alpha1.MismatchedReason, fmt.Sprintf("%s keeps the budget in windows of another length than %s or with other additionalRates, or only one of the two objects has a key", root, s.written().Window),
			"set rate.window, additionalRates and key to the same in every cluster; a window counts once the open one is over",
		}
	case budget.Partitioned, budget.Starting:
	}
	return trouble{v1alpha1.PartitionedReason, root + " does not answer", s.reach()}
}

// reach is the cure when the coordinator cannot be reached.
func (s *budgetScope) reach() string {
	switch {
	case s.enforced.Hub != nil:
		return fmt.Sprintf("make sure that the controllers of this cluster reach %s, and that the hub's leading controller runs", s.enforced.Hub.Endpoint)
	case s.keeps():
		return s.restore()
	}
	return fmt.Sprintf("make sure that the controllers of this cluster reach %s, and that it runs", s.enforced.Coordinator.Address)
}

// restore is the cure when the coordinator was reached and keeps nothing.
func (s *budgetScope) restore() string {
	switch {
	case s.enforced.Hub != nil:
		return "make sure that the hub's controllers run, that one of them leads, and that they run a version of Weir that fits this one's"
	case s.keeps():
		return "make sure that the controller may write ConfigMaps of its namespace, where it sets units aside before it grants them"
	}
	return fmt.Sprintf("make sure that %s takes writes", s.root())
}

// renew is the cure when credentials are refused.
func (s *budgetScope) renew() string {
	if s.enforced.Hub == nil {
		return fmt.Sprintf("put the server's present credentials into %s, and let the controller read it", s.credentials())
	}
	return fmt.Sprintf("copy the Secret weir-member-%s of the hub's controller into %s once more, and let the controller read it", s.enforced.Member, s.credentials())
}
