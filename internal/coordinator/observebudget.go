package coordinator

import "github.com/weir-dev/weir/internal/budget"

// ObserveBudget returns what is known of the budget of a FederatedBudget. It does not
// block.
func (c *Coordinator) ObserveBudget(namespace, name string) budget.Observation {
	t := c.present.Load()
	if t == nil {
		return budget.Observation{}
	}
	return t.budgets.Observe(namespace, name)
}
