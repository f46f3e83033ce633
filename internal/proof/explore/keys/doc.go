// Package keys searches budgets with a key exhaustively: the models of package explore's
// search that drive keys.State and keys.Purse. They add regions, processes, messages under
// way, crashes, a record that is written by compare-and-swap, and an auditor that counts what
// is admitted of each key while the coordinator's clock shows a window. The production code
// decides what is granted, set aside and handed on.
package keys
