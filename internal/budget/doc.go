// Package budget says what the leading controller of a cluster knows of the budgets
// that it shares with other clusters: the words between the part that draws from them
// and the part that writes their status.
//
// It holds values only. Whoever runs the regions fills them in, whoever reconciles
// FederatedBudgets reads them, and neither needs to know the other.
package budget
