// Package joint draws from several budgets at once, one for each rate of a limit: what a holder is
// granted is charged to all of them or to none.
//
// Each budget grants by itself, as for a limit of its own, and knows nothing of the others. A
// holder is granted the smallest amount that all granted:
//
//   - The budgets are asked in turn, from the shortest window to the longest, each for what those
//     before have granted. So the longest are asked for nothing that another refuses, and requests
//     that meet in two budgets meet in the same order: one of them is granted the last unit of both.
//   - What the others did not grant goes back at once, to the window that it is of. It goes back
//     once. When that fails or gets lost, the units die with their window: they are lost, and never
//     granted twice.
//   - A grant ends with the window that ends first. Windows that do not overlap are no grant.
//   - An error of one budget, and the end of the request, give back what the others granted.
//
// The package owns no goroutine.
package joint
