// Package region is a member's leading controller at work on the budgets that clusters
// share: for each it runs an engine, which leases units from the budget's coordinator and
// hands them on to the sidecars of this cluster.
//
// A Set lives for one term of leadership. It follows the FederatedBudgets of the
// cluster: engines outlive edits and new credentials. A budget that is kept elsewhere from
// now on, or is gone, gives back what was not handed on. The Set also reports to
// coordinators what sidecars counted in windows that are over. That comes from the audit and
// knows nothing of grants.
//
// The package owns goroutines: one for the Set, one for each budget, and those of the
// engines. None waits for a network while it holds a lock.
package region
