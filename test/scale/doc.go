// Command scale measures what the controller costs at size, and writes docs/capacity.md.
//
//	SCALE_SIDECARS=1000,2500,5000 SCALE_POLICIES=1000,3000,10000 go run ./test/scale
//
// etcd, the API server and two replicas of the controller are processes of this machine,
// the controller with the memory of its Deployment. A sidecar here is what talks to the
// controller in one: its client, its enforcer and their reports, with a pod and with a
// token of its own that is bound to it. All of them are in this process, so what they cost
// is not in the figures of the controller, but it is on the same machine.
//
// A run fails when a limit is exceeded, a status is wrong, or what has to come does not
// within a generous time. How fast and how large is for who reads the page: it stands
// beside the goals.
package main
