package main

import (
	"context"
	"strings"
	"time"

	"github.com/weir-dev/weir/internal/controlplane/inject"
	"github.com/weir-dev/weir/internal/fleetpb"
)

const (
	fleetName = "weir-fleet.weir-system.svc" // in the controller's certificate

	intruder      = "intruder" // the pod by which attackers connect, and its policy
	intruderLimit = 5
	answersTime   = 1500 * time.Millisecond // in which answers of a stream come
)

// streamRows are of connections to the fleet's port.
func streamRows() []row {
	token := func(name, want string, make func(context.Context, *world) (string, error)) row {
		return row{name: name, as: stranger, do: connects(make), must: be("refused", "Unauthenticated", want)}
	}
	hello := func(name string, m must, edit func(*fleetpb.Hello)) row {
		return row{name: name, as: stranger, do: greets(edit), must: m}
	}
	says := func(name string, m must, all ...*fleetpb.FromHolder) row {
		return row{name: name, as: stranger, do: talks(all...), must: m}
	}
	own := func(edit func(*fleetpb.LimitReport)) *fleetpb.FromHolder {
		r := &fleetpb.LimitReport{Namespace: evilSpace, Policy: intruder, Limit: "all", Generation: 1}
		edit(r)
		return &fleetpb.FromHolder{Message: &fleetpb.FromHolder_Report{Report: &fleetpb.Report{Limits: []*fleetpb.LimitReport{r}}}}
	}
	lease := func(edit func(*fleetpb.LeaseRequest)) *fleetpb.FromHolder {
		r := &fleetpb.LeaseRequest{
			Id: 1, Key: &fleetpb.Key{Namespace: evilSpace, Policy: intruder, Limit: "all"}, Generation: 1, Op: 0, Min: 1, Want: 1,
			Rates: []*fleetpb.Rate{{Limit: intruderLimit, WindowMicros: victimWindow.Microseconds()}},
		}
		edit(r)
		return &fleetpb.FromHolder{Message: &fleetpb.FromHolder_Lease{Lease: r}}
	}
	unserved := be("nothing is granted", "error:").without("granted:")
	return []row{
		token("no token", "", func(context.Context, *world) (string, error) { return "", nil }),
		token("a token that is not one", "not a JSON Web Token", func(context.Context, *world) (string, error) { return "x", nil }),
		token("a token of 20 KB", "bytes", func(context.Context, *world) (string, error) { return strings.Repeat("x", 20<<10), nil }),
		token("a pod's token for the API server", "it is not for the audience", tokenFor("https://kubernetes.default.svc", true)),
		token("a token of a service account, without a pod", "it is not bound to a pod", tokenFor(inject.TokenAudience, false)),
		token("a pod's token that has expired", "it has expired", resigned(true, func(c map[string]any) { c["exp"] = time.Now().Add(-time.Hour).Unix() })),
		token("a pod's token with another key's signature", "", resigned(false, func(map[string]any) {})),
		token("a token of the victim's pod with another key's signature", "", resigned(false, func(c map[string]any) {
			c["kubernetes.io"] = map[string]any{"namespace": victimSpace, "pod": map[string]any{"name": "web-0", "uid": "x"}}
		})),
		token("a token without a signature", "", unsigned),
		token("the token of a pod that is deleted", "", tokenOfADeletedPod),

		hello("a hello that names another pod", be("refused", "PermissionDenied", "hello names pod"), func(h *fleetpb.Hello) { h.Pod = "web-0" }),
		hello("a hello that names the victim's namespace", be("refused", "PermissionDenied", "hello names namespace"), func(h *fleetpb.Hello) { h.Namespace = victimSpace }),
		hello("a hello with another UID", be("refused", "PermissionDenied", "hello names pod UID"), func(h *fleetpb.Hello) { h.PodUid = "x" }),
		hello("a hello with a nonce of 100 KB", be("refused", "InvalidArgument", "boot nonce"), func(h *fleetpb.Hello) { h.BootNonce = strings.Repeat("x", 100<<10) }),
		hello("a hello with a version of 100 KB", be("refused", "InvalidArgument", "version"), func(h *fleetpb.Hello) { h.Version = strings.Repeat("x", 100<<10) }),
		hello("a hello of a later term", be("refused, and the leader stays", "Unavailable", "knows of term"), func(h *fleetpb.Hello) { h.Term = 1 << 62 }),
		hello("a hello with a million shares of the victim's policy", be("it is served as any other", "config"), func(h *fleetpb.Hello) {
			for range 10_000 {
				h.Holders = append(h.Holders, &fleetpb.Holders_Count{Namespace: victimSpace, Policy: policyName, Holders: 1_000_000})
			}
		}),
		{name: "a report before hello", as: stranger, do: firstSays(own(func(*fleetpb.LimitReport) {})), must: be("refused", "InvalidArgument", "the first message must be hello")},
		{name: "a message of 3 MiB", as: stranger, do: talks(own(func(r *fleetpb.LimitReport) { r.StoreError = strings.Repeat("x", 3<<20) })), must: be("refused", "ResourceExhausted")},

		says("a lease of the victim's limit", unserved, lease(func(r *fleetpb.LeaseRequest) { r.Key.Namespace, r.Key.Policy = victimSpace, policyName })),
		says("a lease of 2^50 units of its own limit", be("no more than the limit is granted", "lease:", "granted:5").without("granted:6"), lease(func(r *fleetpb.LeaseRequest) { r.Want = 1 << 50 })),
		says("a lease of its own limit by a rate of a billion", be("the policy's rate counts", "lease:", "limit:5 ").without("granted:6"), lease(func(r *fleetpb.LeaseRequest) { r.Rates[0].Limit = 1_000_000_000 })),
		says("a lease by an operation beyond 8 bits", unserved, lease(func(r *fleetpb.LeaseRequest) { r.Op = 256 })),
		says("a lease of a key that is not a hash", unserved, lease(func(r *fleetpb.LeaseRequest) { r.Key.Hash = "a/b{victim}" })),
		says("a lease of less than nothing", unserved, lease(func(r *fleetpb.LeaseRequest) { r.Min, r.Want = -5, -1 })),
		says("counts of 2^62 in a report", be("rejected, and the field is named", "rejected:", "admitted_total"), own(func(r *fleetpb.LimitReport) { r.AdmittedTotal = 1 << 62 })),
		says("counts below nothing in a report", be("rejected, and the field is named", "rejected:", "refused_total"), own(func(r *fleetpb.LimitReport) { r.RefusedTotal = -1 })),
		says("300 rows in a report of one limit", be("rejected, and the field is named", "rejected:", "windows has 300 entries"), own(func(r *fleetpb.LimitReport) {
			for range 300 {
				r.Windows = append(r.Windows, &fleetpb.WindowReport{Windows: []*fleetpb.Window{{Rate: &fleetpb.Rate{Limit: intruderLimit, WindowMicros: victimWindow.Microseconds()}, Index: 1}}})
			}
		})),
		says("a report that the victim admitted a billion", be("it counts for nothing; the victim's Δ stays 0", "config"), own(func(r *fleetpb.LimitReport) {
			r.Namespace, r.Policy, r.AdmittedTotal = victimSpace, policyName, 1_000_000_000
			rate := &fleetpb.Rate{Limit: victimLimit, WindowMicros: victimWindow.Microseconds()}
			r.Windows = []*fleetpb.WindowReport{{Windows: []*fleetpb.Window{{Rate: rate, Index: time.Now().Unix() / 5}}, Final: true, Admitted: 1_000_000_000}}
		})),
		says("a share of a pool of the victim's namespace", be("none is given", "share:", "error:").without("share: 1"), &fleetpb.FromHolder{Message: &fleetpb.FromHolder_Heartbeat{
			Heartbeat: &fleetpb.Heartbeat{Id: 1, Namespace: victimSpace, Pool: "backend", Generation: 1, Limit: 1_000_000},
		}}),
		says("units of the victim's that were never granted, given back", be("the victim's limit stays", "config"), lease(func(r *fleetpb.LeaseRequest) {
			r.Id, r.Key.Namespace, r.Key.Policy, r.Op, r.AtMicros = 0, victimSpace, policyName, 1, time.Now().UnixMicro()
			rate := &fleetpb.Rate{Limit: victimLimit, WindowMicros: victimWindow.Microseconds()}
			r.Windows = []*fleetpb.Window{{Rate: rate, Index: time.Now().Unix() / 5, Granted: victimLimit}}
		})),
		{name: "20 streams of one pod", as: stranger, do: manyStreams(20), must: be("2 are open at a time", "at most 2 open")},
		{name: "leases as fast as they can be sent, for 5 s", as: stranger, long: true, do: floodsLeases(lease(func(r *fleetpb.LeaseRequest) { r.Id = 7 })), must: be("others are served", "sent")},
		{name: "500 connections that do not shake hands", as: stranger, long: true, do: silent(500), must: be("all are ended in time", "0 of 500 are open")},
		{name: "2,500 connections that shake hands and say nothing", as: stranger, long: true, do: idle(2500), must: be("all are ended in time", "0 of 2500 are open")},
		{name: "TLS 1.2 at the fleet's port", as: stranger, do: oldTLSAt(func(w *world) string { return w.cluster.Controller.FleetAddress() }), must: be("no handshake", "protocol version not supported")},
	}
}
