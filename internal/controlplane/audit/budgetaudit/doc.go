// Package budgetaudit measures how far a budget that several clusters share kept to its
// limit. It reads the ledger of its coordinator: what the controllers of all clusters
// reported of windows that are over. Where a budget has a key, each of its values has the limit.
// Members then report the values that matter, and are asked for their counts of those that others
// reported. Like package audit it is pure: time is an argument, and nothing here starts a goroutine.
package budgetaudit
