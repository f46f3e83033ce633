package plugin

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/spf13/cobra"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/weir-dev/weir/api/v1alpha1"
	"github.com/weir-dev/weir/internal/controlplane/translate"
)

func newTop() *cobra.Command {
	var values []string
	cmd := &cobra.Command{
		Use:   "top [RATELIMITPOLICY] [--value VALUE]...",
		Short: "List the keys with the most requests in the last minutes",
		Long: "List the hottest keys of the limits of one policy, or of all, the most requests first: units admitted and refused a minute " +
			"in the last minutes, and since the pods started. The status of a policy has hashes and no values, which may be secrets. " +
			"VALUE is filled in where spec.overrides or --value name the value.\n\n" +
			"It reads ratelimitpolicies and, with --value, the federatedbudgets that they draw from.",
		Example: "  kubectl weir top -n shop checkout\n" +
			"  kubectl weir top -n shop checkout --value alice --value bob\n" +
			"  kubectl weir top -A",
		Args: cobra.MaximumNArgs(1),
	}
	cmd.Flags().StringArrayVar(&values, "value", nil, "value of a key to look for, its parts separated by commas, %2C for a comma; may be repeated")
	where, as := newCluster(cmd), newFormat(cmd)
	cmd.ValidArgsFunction = where.complete(policyNames)
	cmd.RunE = where.run(func(cmd *cobra.Command, at *session, args []string) error {
		policies, err := at.policies(cmd.Context(), args)
		if err != nil {
			return err
		}
		keysOf := func(string) translate.Budgets { return noBudgets }
		if len(values) > 0 && slices.ContainsFunc(policies, func(p v1alpha1.RateLimitPolicy) bool { return translate.Draws(&p) }) {
			if keysOf, err = at.budgetKeys(cmd.Context()); err != nil {
				return err
			}
		}
		rows := []topRow{}
		for i := range policies {
			rows = append(rows, topRows(&policies[i], values, keysOf(policies[i].Namespace))...)
		}
		slices.SortStableFunc(rows, func(a, b topRow) int { return cmp.Compare(b.perMinute(), a.perMinute()) })
		if len(rows) == 0 && as.String() == "table" {
			cmd.PrintErrf("No limit with a key had requests in the last minutes %s.\n", at.elsewhere())
			return nil
		}
		return as.print(cmd.OutOrStdout(), topList{Items: rows}, topHeader, topCells(rows))
	})
	return cmd
}

// policies returns the policy that is named, or all of the namespace that was chosen.
func (s *session) policies(ctx context.Context, names []string) ([]v1alpha1.RateLimitPolicy, error) {
	if len(names) == 1 {
		if s.namespace == "" {
			return nil, fmt.Errorf("policy %s is of one namespace: name that with -n in place of -A", names[0])
		}
		var one v1alpha1.RateLimitPolicy
		if err := s.Get(ctx, client.ObjectKey{Namespace: s.namespace, Name: names[0]}, &one); err != nil {
			return nil, s.failed("reading the policy", err)
		}
		return []v1alpha1.RateLimitPolicy{one}, nil
	}
	var all v1alpha1.RateLimitPolicyList
	if err := s.List(ctx, &all, client.InNamespace(s.namespace)); err != nil {
		return nil, s.failed("listing ratelimitpolicies", err)
	}
	return all.Items, nil
}

// budgetKeys returns the budgets of each namespace, as their first members draw from them: all members
// have the same key.
func (s *session) budgetKeys(ctx context.Context) (func(namespace string) translate.Budgets, error) {
	all, err := s.budgets(ctx, nil)
	if err != nil {
		return nil, err
	}
	m := manifest{}
	for i := range all {
		m.budgets = append(m.budgets, &all[i])
	}
	return m.budgetsOf, nil
}

// A topList is what is printed as JSON and YAML.
type topList struct {
	Items []topRow `json:"items"`
}

// A topRow is one value of the key of a limit.
type topRow struct {
	Namespace         string    `json:"namespace"`
	Policy            string    `json:"policy"`
	Limit             string    `json:"limit"`
	Hash              string    `json:"hash"`
	Value             string    `json:"value,omitempty"`             // as far as it is known
	Shared            bool      `json:"shared,omitempty"`            // several values have this counter
	AdmittedPerMinute *int64    `json:"admittedPerMinute,omitempty"` // units in the last minutes
	RefusedPerMinute  *int64    `json:"refusedPerMinute,omitempty"`
	Admitted          int64     `json:"admitted"` // units since the pods started
	Refused           int64     `json:"refused"`
	MeasuredAt        time.Time `json:"measuredAt"`
}

func (r *topRow) perMinute() int64 {
	var sum int64
	for _, n := range []*int64{r.AdmittedPerMinute, r.RefusedPerMinute} {
		if n != nil {
			sum += *n
		}
	}
	return sum
}

var topHeader = []string{"NAMESPACE", "POLICY", "LIMIT", "HASH", "VALUE", "SHARED", "ADMITTED/MIN", "REFUSED/MIN", "ADMITTED", "REFUSED", "MEASURED"}

func topCells(rows []topRow) [][]string {
	cells := make([][]string, 0, len(rows))
	for _, r := range rows {
		value, shared := "", ""
		if r.Value != "" {
			value = oneLine(&r.Value)
		}
		if r.Shared {
			shared = "True"
		}
		cells = append(cells, []string{
			r.Namespace, r.Policy, r.Limit, r.Hash, value, shared, figure(r.AdmittedPerMinute), figure(r.RefusedPerMinute),
			strconv.FormatInt(r.Admitted, 10), strconv.FormatInt(r.Refused, 10), r.MeasuredAt.UTC().Format(time.RFC3339),
		})
	}
	return cells
}

// topRows returns the rows of a policy.
func topRows(p *v1alpha1.RateLimitPolicy, values []string, budgets translate.Budgets) []topRow {
	var rows []topRow
	for i := range p.Status.Limits {
		l := &p.Status.Limits[i]
		known := knownValues(p, l.Name, values, budgets)
		for _, k := range l.HottestKeys {
			rows = append(rows, topRow{
				Namespace: p.Namespace, Policy: p.Name, Limit: l.Name, Hash: k.Hash, Value: known[k.Hash], Shared: k.Shared,
				AdmittedPerMinute: k.AdmittedPerMinute, RefusedPerMinute: k.RefusedPerMinute, Admitted: k.Admitted, Refused: k.Refused,
				MeasuredAt: k.MeasuredAt.Time,
			})
		}
	}
	return rows
}
