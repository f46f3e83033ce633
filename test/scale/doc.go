// Command scale measures what the controller costs at size, and writes docs/capacity.md.
//
//	SCALE_SIDECARS=1000,2500,5000 SCALE_POLICIES=1000,3000,10000 go run ./test/scale
//
// etcd, the API server and two replicas of the controller are processes of this machine,
// the controller with the memory of its Deployment. A sidecar here is the part of one that
// talks to the controller: its client, its enforcer and their reports, with a pod and with
// a token of its own that is bound to it. All of them are in this process, so their cost is
// not in the figures of the controller, but on the same machine.
//
// A run fails when a limit is exceeded, a status is wrong, or an expected event does not
// come within a generous time. Durations and sizes do not fail a run: the page shows them
// beside the goals.
package main
