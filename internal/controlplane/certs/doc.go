// Package certs keeps the certificates of the controller's servers: an authority
// of its own and a serving certificate signed by it.
//
// One Secret is the truth. Every replica looks at it every few seconds, renews what is
// due and writes it back by compare-and-swap. When several replicas act at once, one
// wins and the others take over its result. The certificates that a replica serves and
// remembers outlive the Secret: a deleted or damaged one is written again under the
// same authority, which sidecars have learned at their injection and could not unlearn.
//
// Every replica also puts the authority into the webhook configurations and puts
// it back when somebody else has changed it. All replicas write the same bytes,
// so no leader is needed, and admission works while there is none.
package certs
