package plugin

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/weir-dev/weir/api/v1alpha1"
)

func newBudget() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "budget",
		Short: "Show the members of a FederatedBudget, and print the manifests for another one",

		DisableFlagsInUseLine: true,
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) > 0 {
				return fmt.Errorf("budget has no command %q: use status or join", args[0])
			}
			return cmd.Help()
		},
	}
	cmd.AddCommand(newBudgetStatus(), newBudgetJoin())
	return cmd
}

func newBudgetStatus() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "status [FEDERATEDBUDGET]",
		Short: "Show how the open window of budgets is divided over their members, and which the coordinator hears of",
		Long: "Show how the open window of one FederatedBudget, or of all, is divided over its members, and which of them the " +
			"coordinator hears of, as this cluster knew it when the status was written.\n\n" +
			"It reads federatedbudgets.",
		Example: "  kubectl weir budget status -n shop checkout-world\n" +
			"  kubectl weir budget status -A",
		Args: cobra.MaximumNArgs(1),
	}
	where, as := newCluster(cmd), newFormat(cmd)
	cmd.ValidArgsFunction = where.complete(budgetNames)
	cmd.RunE = where.run(func(cmd *cobra.Command, at *session, args []string) error {
		budgets, err := at.budgets(cmd.Context(), args)
		if err != nil {
			return err
		}
		list := budgetList{Items: []budgetRow{}}
		for i := range budgets {
			list.Items = append(list.Items, budgetOf(&budgets[i]))
		}
		if as.String() != "table" {
			return as.print(cmd.OutOrStdout(), list, nil, nil)
		}
		if len(list.Items) == 0 {
			cmd.PrintErrf("No FederatedBudget found %s.\n", at.elsewhere())
			return nil
		}
		if err := printTable(cmd.OutOrStdout(), budgetHeader, list.cells()); err != nil {
			return err
		}
		fmt.Fprintln(cmd.OutOrStdout())
		return printTable(cmd.OutOrStdout(), memberHeader, list.members())
	})
	return cmd
}

// budgets returns the budget that is named, or all of the namespace that was chosen.
func (s *session) budgets(ctx context.Context, names []string) ([]v1alpha1.FederatedBudget, error) {
	if len(names) == 0 {
		var all v1alpha1.FederatedBudgetList
		if err := s.List(ctx, &all, client.InNamespace(s.namespace)); err != nil {
			return nil, s.failed("listing federatedbudgets", err)
		}
		return all.Items, nil
	}
	if s.namespace == "" {
		return nil, fmt.Errorf("budget %s is of one namespace: name that with -n in place of -A", names[0])
	}
	var one v1alpha1.FederatedBudget
	if err := s.Get(ctx, client.ObjectKey{Namespace: s.namespace, Name: names[0]}, &one); err != nil {
		return nil, s.failed("reading the budget", err)
	}
	return []v1alpha1.FederatedBudget{one}, nil
}

// A budgetList is what is printed as JSON and YAML.
type budgetList struct {
	Items []budgetRow `json:"items"`
}

// A budgetRow is a budget, as this cluster knows it.
type budgetRow struct {
	Namespace   string                 `json:"namespace"`
	Budget      string                 `json:"budget"`
	Limit       int64                  `json:"limit"` // of a window of the first rate, as the figures are
	Window      string                 `json:"window"`
	Root        string                 `json:"root,omitempty"`  // that divides the limit: a member, Redis or Postgres
	State       v1alpha1.RootState     `json:"state,omitempty"` // of the root
	Address     string                 `json:"address,omitempty"`
	Connected   metav1.ConditionStatus `json:"connected"`
	Granted     *int64                 `json:"granted,omitempty"` // units of the open window that members have
	Kept        *int64                 `json:"kept,omitempty"`    // for members that may ask for them
	Unallocated *int64                 `json:"unallocated,omitempty"`
	Reason      string                 `json:"reason,omitempty"` // why it is not connected, or grants nothing
	Members     []memberRow            `json:"members"`
	// Rates are the additional ones, as their columns show them.
	Rates []rateRow `json:"additionalRates,omitempty"`
}

// A rateRow is one additional rate of a budget.
type rateRow struct {
	Rate        string `json:"rate"`
	Granted     *int64 `json:"granted,omitempty"` // units of the open window
	Kept        *int64 `json:"kept,omitempty"`
	Unallocated *int64 `json:"unallocated,omitempty"`
}

// A memberRow is one member of a budget.
type memberRow struct {
	Member       string               `json:"member"`
	Self         bool                 `json:"self,omitempty"` // this cluster
	Hub          bool                 `json:"hub,omitempty"`
	State        v1alpha1.MemberState `json:"state,omitempty"` // as the coordinator sees it
	Nominal      int64                `json:"nominal"`
	Granted      *int64               `json:"granted,omitempty"` // units of the open window
	Wanted       *int64               `json:"wanted,omitempty"`
	Slice        *int64               `json:"slice,omitempty"` // that it may use without asking
	Used         *int64               `json:"used,omitempty"`  // in the last window measured
	LastSeenTime *time.Time           `json:"lastSeenTime,omitempty"`
}

// budgetOf returns the row of a budget, with the members that its spec names.
func budgetOf(b *v1alpha1.FederatedBudget) budgetRow {
	row := budgetRow{
		Namespace: b.Namespace, Budget: b.Name, Limit: b.Spec.Rate.Limit, Window: string(b.Spec.Rate.Window),
		Connected: metav1.ConditionUnknown, Members: []memberRow{},
	}
	if root := b.Status.Root; root != nil {
		row.Root, row.State, row.Address = root.Member, root.State, root.Address
		if row.Root == "" && b.Spec.Coordinator.Type != v1alpha1.KubernetesCoordinator {
			row.Root = string(b.Spec.Coordinator.Type)
		}
	}
	if division := b.Status.Allocation; division != nil {
		row.Granted, row.Kept, row.Unallocated = &division.Granted, &division.Kept, &division.Unallocated
	}
	for _, r := range b.Status.AdditionalRates {
		rate := rateRow{Rate: r.Rate}
		if division := r.Allocation; division != nil {
			rate.Granted, rate.Kept, rate.Unallocated = &division.Granted, &division.Kept, &division.Unallocated
		}
		row.Rates = append(row.Rates, rate)
	}
	row.Connected, row.Reason = link(b.Status.Conditions)
	for _, m := range b.Spec.Members {
		member := memberRow{Member: m.Name, Self: m.Name == b.Status.Self, Hub: m.Name == row.Root, Nominal: m.Nominal}
		for i := range b.Status.Members {
			if s := &b.Status.Members[i]; s.Name == m.Name {
				member.State, member.Granted, member.Wanted, member.Slice, member.Used = s.State, s.Granted, s.Wanted, s.Slice, s.Used
				if s.LastSeenTime != nil {
					member.LastSeenTime = &s.LastSeenTime.Time
				}
			}
		}
		row.Members = append(row.Members, member)
	}
	return row
}

// link returns whether the cluster reaches the coordinator, and the message of the condition
// that keeps it from being granted units.
func link(conditions []metav1.Condition) (connected metav1.ConditionStatus, reason string) {
	connected = metav1.ConditionUnknown
	if c := meta.FindStatusCondition(conditions, v1alpha1.ConnectedCondition); c != nil {
		connected = c.Status
	}
	for kind, bad := range map[string]metav1.ConditionStatus{
		v1alpha1.AcceptedCondition: metav1.ConditionFalse, v1alpha1.ConnectedCondition: metav1.ConditionFalse, v1alpha1.LearningCondition: metav1.ConditionTrue,
	} {
		// At most one of them is bad: the others are absent or Unknown then.
		if c := meta.FindStatusCondition(conditions, kind); c != nil && c.Status == bad {
			reason = c.Message
		}
	}
	return connected, reason
}

var (
	budgetHeader = []string{"NAMESPACE", "BUDGET", "LIMIT", "ROOT", "STATE", "CONNECTED", "GRANTED", "KEPT", "UNALLOCATED", "REASON"}
	memberHeader = []string{"BUDGET", "MEMBER", "ROLE", "STATE", "NOMINAL", "GRANTED", "WANTED", "SLICE", "USED", "LAST SEEN"}
)

func (l budgetList) cells() [][]string {
	var cells [][]string
	for _, b := range l.Items {
		cells = append(cells, []string{
			b.Namespace, b.Budget, fmt.Sprintf("%d/%s", b.Limit, b.Window), b.Root, string(b.State), string(b.Connected),
			figure(b.Granted), figure(b.Kept), figure(b.Unallocated), b.Reason,
		})
		for _, r := range b.Rates {
			cells = append(cells, []string{
				b.Namespace, b.Budget, r.Rate, b.Root, string(b.State), string(b.Connected), figure(r.Granted), figure(r.Kept), figure(r.Unallocated), "",
			})
		}
	}
	return cells
}

func (l budgetList) members() [][]string {
	var cells [][]string
	for _, b := range l.Items {
		for _, m := range b.Members {
			role, seen := "", ""
			switch {
			case m.Self && m.Hub:
				role = "self,hub"
			case m.Self:
				role = "self"
			case m.Hub:
				role = "hub"
			}
			if m.LastSeenTime != nil {
				seen = m.LastSeenTime.UTC().Format(time.RFC3339)
			}
			cells = append(cells, []string{
				b.Budget, m.Member, role, string(m.State), figure(&m.Nominal), figure(m.Granted), figure(m.Wanted), figure(m.Slice), figure(m.Used), seen,
			})
		}
	}
	return cells
}
