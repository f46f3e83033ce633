// Package probe makes the kubelet's probes in its place.
//
// Where all connections to the app's port are redirected to the sidecar, those of the
// kubelet are too, and nothing in them says whose they are. So the injector has the
// kubelet ask the sidecar's admin port instead, at /probe/TOKEN/CONTAINER/KIND. The
// sidecar then asks the app as the kubelet would have done: by HTTP, HTTPS without
// looking at the certificate, TCP or gRPC. Such a question is not a request to the app
// for any limit, pool or metric.
//
// The answer is 200, or 503 with the cause as text; no body of the app's is passed on.
// Only what was declared is asked, at the app's own address, and never twice at a time. A
// probe that comes while a question is on its way gets its answer. So the path opens no
// way around a limit.
//
// A hook may end the app, and a question may carry credentials in its headers, while
// anybody may reach the admin port. So the path holds a token, which the injector makes
// for each pod and nobody can guess. It keeps out other pods, but not users who may
// read this one's object, which holds the token.
package probe
