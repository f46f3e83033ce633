// Package store holds what every store shares: how a counter is named and what
// it means that a store cannot be reached. The stores themselves are the
// packages below it; each applies a command of pkg/limiter to one key
// atomically, by its own clock, and passes the suite in storetest.
package store
