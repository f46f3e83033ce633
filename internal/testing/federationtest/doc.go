// Package federationtest sets a coordinator of federated budgets and the ways to it up for tests
// of regions that draw from them: the coordinator restarts, is away or forgets, and messages are late,
// lost or repeated.
package federationtest
