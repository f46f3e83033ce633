package controllers

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/weir-dev/weir/api/v1alpha1"
	"github.com/weir-dev/weir/internal/controlplane/audit"
	"github.com/weir-dev/weir/internal/controlplane/audit/budgetaudit"
	"github.com/weir-dev/weir/internal/controlplane/budget"
	"github.com/weir-dev/weir/internal/controlplane/condition"
	"github.com/weir-dev/weir/internal/controlplane/resolve"
	"github.com/weir-dev/weir/internal/controlplane/translate"
	"github.com/weir-dev/weir/pkg/federation/ledger"
	"github.com/weir-dev/weir/pkg/limiter"
	"github.com/weir-dev/weir/pkg/policy"
)

// openWindow is the number of the window that is open at now.
var openWindow = now.Unix()

// newBudgetScope returns a budget of 100 per second that this cluster, eu-west, keeps
// and shares with us-east. Both were granted 40 of the open window; of the one before
// they admitted 50 and 41, and refused 3.
func newBudgetScope(changes ...func(*budgetScope)) *budgetScope {
	s := &budgetScope{
		cluster: "eu-west",
		budget: &v1alpha1.FederatedBudget{
			ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "world", UID: "uid", Generation: generation},
			Spec: v1alpha1.FederatedBudgetSpec{
				ID: "acme/world", Rate: v1alpha1.BudgetRate{Limit: 100, Window: "1s"},
				Members: []v1alpha1.BudgetMember{{Name: "eu-west"}, {Name: "us-east"}},
			},
		},
		enforced: policy.FederatedBudget{
			ID: "acme/world", Generation: generation, Member: "eu-west",
			Params: ledger.Params{
				Limit: 100, Window: limiter.Second,
				Members: []ledger.Member{{Name: "eu-west", Weight: 1, Borrowing: -1}, {Name: "us-east", Weight: 1, Borrowing: -1}},
			},
			Coordinator: policy.Store{Type: policy.ControllerStore}, Escrow: policy.Store{Type: policy.ControllerStore},
			OnCoordinatorOutage: policy.BudgetFailClosed,
		},
		now: now,
	}
	at := limiter.Instant(now.UnixMicro())
	before := ledger.Closed{Index: openWindow - 1, Limit: 100, Granted: 97, Usage: []ledger.MemberUsage{
		{Member: "eu-west", Granted: 55, Admitted: 50, Refused: 3, Reported: true, Complete: true},
		{Member: "us-east", Granted: 42, Admitted: 41, Reported: true, Complete: true},
	}}
	s.observation = budget.Observation{
		Generation: translate.Generation(s.budget),
		Root:       budget.Root{Member: "eu-west", Term: 7, Since: now.Add(-time.Hour)},
		Read:       at,
		Ledger: &ledger.State{
			Window: limiter.Second, Index: openWindow, Term: 7, Limit: 100, Latest: at,
			Accounts:  []ledger.Account{{Member: "eu-west", Holder: "a", Granted: 40}, {Member: "us-east", Holder: "b", Granted: 40}},
			Standings: []ledger.Standing{{Member: "eu-west", Seen: at, Demand: 52}, {Member: "us-east", Seen: at.Add(-limiter.Second), Demand: 41}},
			Closed:    []ledger.Closed{before},
		},
		Figures: budgetaudit.Figures{
			Generation: generation, Verdict: audit.Measured, Window: &before,
			Overshoot:        &budgetaudit.Overshoot{WindowEnd: now},
			UnderUtilization: &audit.UnderUtilization{Observed: 300, Worst: 800},
			LeasesPerSecond:  4.2, UnitsPerLease: 12.5,
		},
	}
	for _, change := range changes {
		change(s)
	}
	return s
}

// ofHub makes the budget one that another cluster keeps.
func ofHub(s *budgetScope) {
	s.enforced.Hub = &policy.Hub{Endpoint: "hub.example:15040", Secret: "shop/weir-hub"}
	s.observation.Root.Member = "us-east"
}

// inRedis makes the budget one that a server keeps.
func inRedis(s *budgetScope) {
	s.enforced.Coordinator = policy.Store{Type: policy.RedisStore, Address: "redis:6379", Secret: "shop/redis"}
	s.observation.Root.Member = ""
}

// cutOff makes the coordinator answer nothing for a minute.
func cutOff(p budget.Problem, detail string) func(*budgetScope) {
	return func(s *budgetScope) {
		s.observation.Link = budget.Link{Problem: p, Detail: detail, Since: now.Add(-time.Minute)}
	}
}

func outage(action policy.BudgetOutage, slice int64) func(*budgetScope) {
	return func(s *budgetScope) { s.enforced.OnCoordinatorOutage, s.observation.Slice = action, slice }
}

func counted(change func(*budgetaudit.Figures)) func(*budgetScope) {
	return func(s *budgetScope) { change(&s.observation.Figures) }
}

func learningUntil(d time.Duration, behind bool) func(*budgetScope) {
	return func(s *budgetScope) { s.observation.Learning, s.observation.Behind = now.Add(d), behind }
}

// vouchedBy makes members say that the budget is new.
func vouchedBy(members ...string) func(*budgetScope) {
	return func(s *budgetScope) {
		for i, name := range members {
			s.observation.Ledger.Vouches = append(s.observation.Ledger.Vouches, ledger.Vouch{Member: name, List: int64(1 + i)})
		}
	}
}

func unheardOf(s *budgetScope) { s.observation = budget.Observation{} }

func TestConditionsOfABudget(t *testing.T) {
	const meanwhile = "; meanwhile this cluster hands on what it was granted of the open window, then refuses (FailClosed); "
	tests := map[string]struct {
		scope *budgetScope
		want  metav1.Condition
	}{
		"a budget that is valid": {newBudgetScope(), condition.True("Accepted", "Accepted", "the budget is valid")},
		"a budget that is doubtful": {
			newBudgetScope(func(s *budgetScope) { s.doubts = []string{"odd"} }), condition.True("Accepted", "Accepted", "the budget is valid; odd"),
		},
		"a budget that is wrong": {
			newBudgetScope(func(s *budgetScope) { s.invalid = errors.New("wrong") }), condition.False("Accepted", "Invalid", "wrong"),
		},
		"a budget that may not have its id": {
			newBudgetScope(func(s *budgetScope) {
				s.denied = &resolve.IDError{Namespace: "shop", ID: "acme/world", Patterns: []string{"shop/*"}}
			}),
			condition.False("Accepted", "IDNotPermitted", "spec.id: namespace shop may not have the id acme/world, but shop/*: choose such an id, "+
				"or let an administrator allow it by --federation-ids of the controller (federation.ids of the chart)"),
		},
		"a budget whose id is taken": {
			newBudgetScope(func(s *budgetScope) {
				s.conflict = &resolve.ConflictError{ID: "acme/world", Older: types.NamespacedName{Namespace: "bank", Name: "first"}}
			}),
			condition.False("Accepted", "Conflicted", "FederatedBudget bank/first has the id acme/world, too; it is older and counts: delete one of the two"),
		},
		"a budget of others": {
			newBudgetScope(func(s *budgetScope) { s.cluster = "ap-south" }),
			condition.False("Accepted", "NotAMember", `this cluster is called "ap-south" by the flag --cluster-name of its controller, and none of the members is: `+
				"add it to spec.members in every cluster, or start the controller with the name of a member (eu-west, us-east)"),
		},

		"this cluster is the hub": {newBudgetScope(), condition.True("Connected", "Connected", "this cluster keeps the budget for all members")},
		"the hub answers": {
			newBudgetScope(ofHub), condition.True("Connected", "Connected", "the hub us-east at hub.example:15040 keeps the budget and grants this cluster its part"),
		},
		"the hub did not say its name": {
			newBudgetScope(ofHub, func(s *budgetScope) { s.observation.Root.Member = "" }),
			condition.True("Connected", "Connected", "the hub at hub.example:15040 keeps the budget and grants this cluster its part"),
		},
		"the certificate is not renewed": {
			newBudgetScope(ofHub, func(s *budgetScope) {
				s.observation.Certificate = budget.Certificate{Ends: now.Add(time.Hour), Problem: "the Secret is immutable"}
			}),
			condition.True("Connected", "Connected", "the hub us-east at hub.example:15040 keeps the budget and grants this cluster its part; "+
				"this cluster's certificate ends at 2026-11-20T11:15:00Z and is not renewed (the Secret is immutable): unless another try succeeds before, "+
				"copy the Secret weir-member-eu-west of the hub's controller into Secret weir-hub of namespace shop once more, and let the controller read it"),
		},
		"the certificate is good": {
			newBudgetScope(ofHub, func(s *budgetScope) { s.observation.Certificate.Ends = now.Add(time.Hour) }),
			condition.True("Connected", "Connected", "the hub us-east at hub.example:15040 keeps the budget and grants this cluster its part"),
		},
		"a server answers": {
			newBudgetScope(inRedis), condition.True("Connected", "Connected", "Redis at redis:6379 keeps the budget and grants this cluster its part"),
		},
		"the hub counts by another limit": {
			newBudgetScope(ofHub, func(s *budgetScope) { s.observation.Ledger.Limit = 80 }),
			condition.True("Connected", "Connected", "the hub us-east at hub.example:15040 keeps the budget and grants this cluster its part; "+
				"it counts by a limit of 80 per 1s, and this object says 100 per 1s: what the hub's object says counts, so make rate.limit here the same"),
		},
		"another member names a smaller limit": {
			newBudgetScope(inRedis, func(s *budgetScope) { s.observation.Ledger.Limit = 80 }),
			condition.True("Connected", "Connected", "Redis at redis:6379 keeps the budget and grants this cluster its part; "+
				"the open window has a limit of 80 per 1s, the smallest that a member named, and this object says 100 per 1s: make rate.limit the same in every cluster"),
		},
		"a window of the hub has the limit before": {
			newBudgetScope(func(s *budgetScope) { s.observation.Ledger.Limit = 80 }),
			condition.True("Connected", "Connected", "this cluster keeps the budget for all members"),
		},
		"the escrow is away": {
			newBudgetScope(func(s *budgetScope) {
				s.enforced.Escrow, s.observation.EscrowError = policy.Store{Type: policy.RedisStore, Address: "here:6379"}, "refused"
			}),
			condition.True("Connected", "Connected", "this cluster keeps the budget for all members; "+
				"the escrow, Redis at here:6379, does not answer (refused), so the leading controller keeps what it is granted in its memory meanwhile"),
		},
		"nothing was asked yet": {
			newBudgetScope(ofHub, cutOff(budget.Starting, "")), condition.Unknown("Connected", "Starting", "the hub us-east at hub.example:15040 was not heard of yet"),
		},
		"this controller has not begun": {
			newBudgetScope(unheardOf), condition.Unknown("Connected", "Starting", "this controller has not begun to draw from the budget yet"),
		},
		"the hub cannot be reached": {
			newBudgetScope(ofHub, cutOff(budget.Partitioned, "no route")),
			condition.False("Connected", "Partitioned", "the hub us-east at hub.example:15040 does not answer (no route), since 2026-11-20T10:14:00Z"+meanwhile+
				"make sure that the controllers of this cluster reach hub.example:15040, and that the hub's leading controller runs"),
		},
		"a server cannot be reached": {
			newBudgetScope(inRedis, cutOff(budget.Partitioned, "no route"), outage(policy.BudgetRegionalOnly, 0)),
			condition.False("Connected", "Partitioned", "Redis at redis:6379 does not answer (no route), since 2026-11-20T10:14:00Z; "+
				"meanwhile this cluster hands on what it leased ahead of the open window, then refuses (RegionalOnly); "+
				"make sure that the controllers of this cluster reach redis:6379, and that it runs"),
		},
		"a cluster that goes on with its slice": {
			newBudgetScope(ofHub, cutOff(budget.Partitioned, ""), outage(policy.BudgetNominal, 30)),
			condition.False("Connected", "Partitioned", "the hub us-east at hub.example:15040 does not answer, since 2026-11-20T10:14:00Z; "+
				"meanwhile this cluster admits 30 per 1s, its slice, without asking (Nominal); "+
				"make sure that the controllers of this cluster reach hub.example:15040, and that the hub's leading controller runs"),
		},
		"the API server takes no blocks": {
			newBudgetScope(cutOff(budget.NoRoot, "forbidden")),
			condition.False("Connected", "NoRoot", "this cluster cannot keep the budget now (forbidden), since 2026-11-20T10:14:00Z"+meanwhile+
				"make sure that the controller may write ConfigMaps of its namespace, where it sets units aside before it grants them"),
		},
		"the hub has no leader": {
			newBudgetScope(ofHub, cutOff(budget.NoRoot, "")),
			condition.False("Connected", "NoRoot", "the hub us-east at hub.example:15040 cannot keep the budget now, since 2026-11-20T10:14:00Z"+meanwhile+
				"make sure that the hub's controllers run, that one of them leads, and that they run a version of Weir that fits this one's"),
		},
		"the hub refuses the credentials": {
			newBudgetScope(ofHub, cutOff(budget.Unauthorized, "bad token")),
			condition.False("Connected", "Unauthorized", "the hub us-east at hub.example:15040 and this cluster do not accept each other's credentials (bad token), since 2026-11-20T10:14:00Z"+meanwhile+
				"copy the Secret weir-member-eu-west of the hub's controller into Secret weir-hub of namespace shop once more, and let the controller read it"),
		},
		"a server refuses the credentials": {
			newBudgetScope(inRedis, cutOff(budget.Unauthorized, "WRONGPASS")),
			condition.False("Connected", "Unauthorized", "Redis at redis:6379 and this cluster do not accept each other's credentials (WRONGPASS), since 2026-11-20T10:14:00Z"+meanwhile+
				"put the server's present credentials into Secret redis of namespace shop, and let the controller read it"),
		},
		"a certificate has expired": {
			newBudgetScope(ofHub, cutOff(budget.CertificateExpired, "")),
			condition.False("Connected", "CertificateExpired", "a certificate between this cluster and the hub us-east at hub.example:15040 is not valid any more, since 2026-11-20T10:14:00Z"+meanwhile+
				"copy the Secret weir-member-eu-west of the hub's controller into Secret weir-hub of namespace shop once more, and let the controller read it"),
		},
		"the hub knows no such budget": {
			newBudgetScope(ofHub, cutOff(budget.UnknownBudget, "")),
			condition.False("Connected", "UnknownBudget", "the hub us-east at hub.example:15040 keeps no budget with the id acme/world, since 2026-11-20T10:14:00Z"+meanwhile+
				"apply a FederatedBudget with this id, without spec.hub, in the hub's cluster, or correct spec.hub.endpoint"),
		},
		"the hub knows no such member": {
			newBudgetScope(ofHub, cutOff(budget.UnknownMember, "")),
			condition.False("Connected", "UnknownMember", "the hub us-east at hub.example:15040 keeps the budget, and lists no member eu-west, since 2026-11-20T10:14:00Z"+meanwhile+
				"add eu-west to spec.members of the FederatedBudget there"),
		},
		"the hub has windows of another length": {
			newBudgetScope(ofHub, cutOff(budget.Mismatched, "")),
			condition.False("Connected", "Mismatched", "the hub us-east at hub.example:15040 keeps the budget in windows of another length than 1s or with other additionalRates, or only one of the two objects has a key, since 2026-11-20T10:14:00Z"+meanwhile+
				"set rate.window, additionalRates and key to the same in every cluster; a window counts once the open one is over"),
		},

		"the ledger knows what it granted": {newBudgetScope(), condition.False("Learning", "Learned", "the ledger knows what it granted of the open window")},
		"the ledger's memory is new": {
			newBudgetScope(learningUntil(time.Second, false)),
			condition.True("Learning", "Amnesia", "the ledger's memory is younger than the open window, so nothing more is granted of that one: it serves from the next window on, which begins about 2026-11-20T10:15:01Z"),
		},
		"a new budget that a member may know more of": {
			newBudgetScope(inRedis, learningUntil(time.Second, false), vouchedBy("eu-west")),
			condition.True("Learning", "Amnesia", "the ledger's memory is younger than the open window, so nothing more is granted of that one: it serves from the next window on, which begins about 2026-11-20T10:15:01Z, or as soon as us-east confirmed, too, that the budget is new"),
		},
		"a new budget with members that differ": {
			newBudgetScope(inRedis, learningUntil(time.Second, false), vouchedBy("eu-west", "us-east")),
			condition.True("Learning", "Amnesia", "the ledger's memory is younger than the open window, so nothing more is granted of that one: it serves from the next window on, which begins about 2026-11-20T10:15:01Z, or as soon as all members list the same members"),
		},
		"the ledger's clock went back": {
			newBudgetScope(learningUntil(time.Minute, true)),
			condition.True("Learning", "Behind", "the clock of the coordinator went back, so nothing is granted until it shows what it showed before, about 2026-11-20T10:16:00Z: correct that clock"),
		},
		"what the ledger did not know is over": {newBudgetScope(learningUntil(0, false)), condition.False("Learning", "Learned", "the ledger knows what it granted of the open window")},
		"nobody knows what the ledger knows": {
			newBudgetScope(learningUntil(time.Second, false), cutOff(budget.Partitioned, "")),
			condition.Unknown("Learning", "Starting", "the ledger cannot be read: see condition Connected"),
		},

		"all admitted within the limit": {newBudgetScope(), condition.True("WithinBound", "Measured", "no measured window exceeded the limit; worst overshoot 0")},
		"a window whose limit was lowered": {
			newBudgetScope(counted(func(f *budgetaudit.Figures) { f.Overshoot.Worst, f.Overshoot.WorstBound = 5, 5 })),
			condition.True("WithinBound", "Measured", "no measured window exceeded its bound; worst overshoot 5, in a window whose limit was lowered after more had been granted of it"),
		},
		"more than the limit": {
			newBudgetScope(counted(func(f *budgetaudit.Figures) {
				f.Verdict, f.Overshoot.Worst, f.Overshoot.WorstEnd = audit.Exceeded, 5, now
			})),
			condition.False("WithinBound", "BoundExceeded", "all members together admitted 5 too many in the window that ended at 2026-11-20T10:15:00.000Z; "+
				"make sure that rate.limit is the same in every cluster, and that the id acme/world is kept by one coordinator only"),
		},
		"more than the limit, and then cut off": {
			newBudgetScope(cutOff(budget.Partitioned, ""), counted(func(f *budgetaudit.Figures) { f.Verdict, f.Overshoot = audit.Exceeded, nil })),
			condition.False("WithinBound", "BoundExceeded", "more was admitted than the limit allows"),
		},
		"a member does not report": {
			newBudgetScope(counted(func(f *budgetaudit.Figures) { f.Verdict, f.Silent = audit.ReportsMissing, []string{"us-east"} })),
			condition.Unknown("WithinBound", "ReportsMissing", "these members took part in the last window and have not reported all that they admitted: us-east"),
		},
		"what others report cannot be read": {
			newBudgetScope(cutOff(budget.Partitioned, "")),
			condition.Unknown("WithinBound", "ReportsMissing", "what the other members report cannot be read while the coordinator does not answer: see condition Connected"),
		},
		"nothing was measured": {
			newBudgetScope(counted(func(f *budgetaudit.Figures) { *f = budgetaudit.Figures{Verdict: audit.Starting} })),
			condition.Unknown("WithinBound", "Starting", notMeasured),
		},
		"nothing can be measured": {
			newBudgetScope(cutOff(budget.Starting, ""), counted(func(f *budgetaudit.Figures) { *f = budgetaudit.Figures{Verdict: audit.NoTraffic} })),
			condition.Unknown("WithinBound", "Starting", notMeasured),
		},
		"nobody asked": {
			newBudgetScope(counted(func(f *budgetaudit.Figures) { *f = budgetaudit.Figures{Verdict: audit.NoTraffic} })),
			condition.Unknown("WithinBound", "NoTraffic", "no member has reported a request"),
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			all := budgetConditionsOf(tc.scope)
			got := meta.FindStatusCondition(all, tc.want.Type)
			if diff := cmp.Diff(&tc.want, got); diff != "" {
				t.Errorf("condition (-want +got):\n%s", diff)
			}
			var kinds []string
			for _, c := range all {
				kinds = append(kinds, c.Type)
			}
			want := "Accepted Connected Learning WithinBound Ready"
			if all[0].Status == metav1.ConditionFalse {
				want = "Accepted Ready Stalled"
			}
			if got := strings.Join(kinds, " "); got != want {
				t.Errorf("conditions %s, want %s", got, want)
			}
		})
	}
}

// An observation of the region under another generation does not apply to this one.
func TestABudgetIsObservedUnderItsGeneration(t *testing.T) {
	s := newBudgetScope()
	said := s.observation
	s.observe(said)
	if !s.running() {
		t.Error("what is said of this generation does not count")
	}
	s.budget.Generation++
	s.observe(said)
	if s.running() {
		t.Error("what is said of another generation counts")
	}
}
