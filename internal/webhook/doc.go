// Package webhook answers the API server's admission requests: it has pods
// injected, and policies and pools validated.
//
// The handlers only fetch, call and answer. What happens to a pod is decided in
// package inject, whether a policy or a pool is sound in package translate. Every
// replica serves them, leader or not.
package webhook
