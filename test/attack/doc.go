// Command attack runs the whole system as processes of this machine, attacks it as those would
// who may do something in a cluster and mean harm, and fails when an attack has an effect.
//
//	ATTACK_GROUPS=webhook,http1 ATTACK_SHORT=1 go run ./test/attack
//
// Each attack is a row: who attacks, what they do, and what must be so after it. The rows are
// in one file a group; docs/attacks.md is rendered from them. Meanwhile a namespace of somebody
// else, the victim's, has pods, a limit and three times as much load as that admits.
//
// After each row the judge looks at more than what the row says must be so:
//
//   - no controller and no sidecar was started again;
//   - none of them took more than 85 % of the memory that it is allowed, which is that of the
//     Deployment and of the injected container. A cgroup limits each where cgroups can be made;
//     elsewhere the limit is GOMEMLIMIT and the resident memory is judged, and the output says so;
//   - pods of the victim are admitted with a sidecar, and soon.
//
// After each group no window of the victim's limit has admitted more than the limit or much less.
//
// Requests that reach an application are counted by the application, never from a status line. The API
// server, its webhooks, etcd and the controller are the real ones, and so are the sidecars. Pods
// run as processes, so nothing here shows what a kubelet or a NetworkPolicy keeps away.
package main
