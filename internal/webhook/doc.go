// Package webhook answers the API server's admission requests: it has pods
// injected, and policies, pools and budgets validated.
//
// The handlers only fetch, call and answer. What happens to a pod is decided in
// package inject, whether a policy, a pool or a budget is sound in package translate.
// Every replica serves them, leader or not.
package webhook
