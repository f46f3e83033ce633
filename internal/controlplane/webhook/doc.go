// Package webhook answers the API server's admission requests: it has pods
// injected, and policies, pools and budgets validated.
//
// The handlers only fetch, call and answer. Package inject decides what happens to a
// pod, package translate whether a policy, a pool or a budget is valid. Every replica
// serves the handlers, leader or not.
package webhook
