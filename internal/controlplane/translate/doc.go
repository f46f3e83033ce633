// Package translate turns RateLimitPolicies, ConcurrencyPools and FederatedBudgets into
// what sidecars and controllers work by, and says what is wrong or doubtful about those
// that cannot or should not be turned. It is pure: it reads nothing but its arguments.
//
// The schema of the CRD already refused what it can see. Here is checked what it
// cannot: selectors, expressions, and how figures relate to one another.
package translate
