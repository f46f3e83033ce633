package controllers

import (
	"fmt"
	"strconv"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/weir-dev/weir/api/v1alpha1"
	"github.com/weir-dev/weir/pkg/federation/ledger"
)

// summary returns the columns that kubectl prints. Those of rates name each.
func (s *budgetScope) summary(status *v1alpha1.FederatedBudgetStatus) v1alpha1.BudgetSummary {
	var limits []string
	for _, r := range ratesOf(&s.budget.Spec) {
		limits = append(limits, budgetRate(r))
	}
	rates := s.rates()
	part := func(of func(*ledger.Closed) int64) string {
		return column(rates, func(s *budgetScope) string { return s.dated(partColumn(s.window(), of)) })
	}
	return v1alpha1.BudgetSummary{
		Limit:   fitted(strings.Join(limits, ", ")),
		Members: membersColumn(status.Members),
		Granted: part(func(w *ledger.Closed) int64 { return w.Granted }),
		Used:    part(admitted),
		Overshoot: column(rates, func(s *budgetScope) string {
			_, over, _ := s.measured()
			return s.dated(overshootInShort(over))
		}),
		Unused: column(rates, func(s *budgetScope) string {
			_, _, unused := s.measured()
			return s.dated(freeColumn(unused))
		}),
		Root:          s.rootColumn(status.Root),
		UnitsPerLease: unitsColumn(status.Coordination),
	}
}

// window returns the window measured last. With a key its ledger counts no units: each value has a
// limit of its own.
func (s *budgetScope) window() *ledger.Closed {
	if s.keyed() {
		return nil
	}
	return s.observation.Figures.Window
}

// budgetRate is a limit and its window in short: 100k/1s.
func budgetRate(r v1alpha1.BudgetRate) string {
	return fmt.Sprintf("%s/%s", thousands(r.Limit), r.Window)
}

// thousands writes a count in the largest of k, M, G and T that loses nothing.
func thousands(n int64) string {
	suffix := ""
	for _, unit := range []string{"k", "M", "G", "T"} {
		if n < 1000 || n%1000 != 0 {
			break
		}
		n, suffix = n/1000, unit
	}
	return strconv.FormatInt(n, 10) + suffix
}

func membersColumn(members []v1alpha1.BudgetMemberStatus) string {
	if len(members) == 0 {
		return v1alpha1.NotMeasured
	}
	connected := 0
	for _, m := range members {
		if m.State == v1alpha1.MemberConnected {
			connected++
		}
	}
	return fmt.Sprintf("%d/%d", connected, len(members))
}

// partColumn is a part of a window's limit in whole percent, rounded down so that only
// all of it is 100%.
func partColumn(window *ledger.Closed, of func(*ledger.Closed) int64) string {
	if window == nil || window.Limit == 0 {
		return v1alpha1.NotMeasured
	}
	part := of(window)
	percent := part * 100 / window.Limit
	if percent == 0 && part > 0 {
		return "<1%"
	}
	return strconv.FormatInt(percent, 10) + "%"
}

func admitted(w *ledger.Closed) int64 {
	var sum int64
	for _, u := range w.Usage {
		sum += u.Admitted
	}
	return sum
}

// rootColumn is the hub's name, and its address until that is known, or the kind of
// server that keeps the budget.
func (s *budgetScope) rootColumn(root *v1alpha1.BudgetRoot) string {
	switch {
	case root == nil:
		return v1alpha1.NotMeasured
	case root.Member != "":
		return root.Member
	case s.enforced.Hub != nil:
		return root.Address[:min(len(root.Address), columnLength)]
	}
	return string(s.enforced.Coordinator.Type)
}

// columnLength is how many characters of a column the API takes.
const columnLength = 64

func unitsColumn(c *v1alpha1.BudgetCoordination) string {
	if c == nil || c.UnitsPerLease == "" {
		return v1alpha1.NotMeasured
	}
	return c.UnitsPerLease
}

// column joins what a column says of each rate.
func column(rates []*budgetScope, of func(*budgetScope) string) string {
	var all []string
	known := false
	for _, s := range rates {
		text := of(s)
		all, known = append(all, text), known || text != v1alpha1.NotMeasured
	}
	if !known {
		return v1alpha1.NotMeasured
	}
	return fitted(strings.Join(all, ", "))
}

// fitted returns a column that the API takes.
func fitted(text string) string {
	const more = " …"
	if len(text) <= columnLength {
		return text
	}
	cut := strings.LastIndex(text[:columnLength-len(more)], ",")
	return text[:max(0, cut)] + more
}

// dated marks a figure of a rate that is older than its newest window.
func (s *budgetScope) dated(text string) string {
	return dated(text, []metav1.Condition{budgetWithinBound(s)})
}
