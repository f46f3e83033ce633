// Package budget defines what the leading controller of a cluster knows of the budgets that
// it shares with other clusters. The part that draws from them reports it to the part that
// writes their status.
//
// It holds values only. The part that runs the regions fills them in, the part that reconciles
// FederatedBudgets reads them, and neither needs to know the other.
package budget
