package main

import (
	"fmt"
	"strings"
	"time"

	"github.com/weir-dev/weir/internal/federationpb"
)

const (
	budgetID     = "world/victim" // which both namespaces may have
	budgetLimit  = 100
	budgetWindow = 5 * time.Second
	foe          = "foe"   // a member of the victim's budget that turned hostile
	ally         = "ally"  // another one
	evilMember   = "rogue" // a member of a budget of the attackers' alone
	evilBudget   = "evil/own"
)

// budgetRows are of budgets that an editor writes, and of members that call a hub.
func budgetRows() []row {
	budget := func(id, members, more string) string {
		return `{apiVersion: weir.dev/v1alpha1, kind: FederatedBudget, metadata: {generateName: evil-}, spec: {id: "` + id + `", rate: {limit: 100, window: 5s}, members: [` + members + `]` + more + `}}`
	}
	named := func(prefix string, n int) string {
		all := make([]string, n)
		for i := range all {
			all[i] = fmt.Sprintf("{name: %s-%d}", prefix, i)
		}
		return strings.Join(all, ", ")
	}
	refused := func(name, text string, parts ...string) row {
		return row{name: name, as: editor, do: object(text), must: be("refused, by "+code(parts[0]), append(parts, "error: ")...)}
	}
	asks := func(name string, m must, edit func(*federationpb.ApplyRequest)) row {
		return row{name: name, as: member, do: applies(edit), must: m}
	}
	unserved := func(parts ...string) must { return be("refused", parts...).without("granted") }
	return []row{
		refused("65 members", budget("evil/a", named("m", 65), ""), "spec.members"),
		refused("two members of one name", budget("evil/a", `{name: a}, {name: a}`, ""), "spec.members[1]"),
		refused("an id with a line break", budget(`evil\n/a`, `{name: a}`, ""), "spec.id"),
		refused("an id that leaves its place", budget(`evil/../world`, `{name: a}`, ""), "spec.id"),
		refused("a member whose name leaves its Secret's", budget("evil/a", `{name: "a/../../x"}`, ""), "spec.members[0].name"),
		refused("nominal shares beyond 64 bits", budget("evil/a", `{name: a, nominal: 9223372036854775807}, {name: b, nominal: 9223372036854775807}`, ""), "nominal"),
		refused("nominal shares of more than the limit", budget("evil/a", `{name: a, nominal: 60}, {name: b, nominal: 60}`, ""), "spec.members"),
		refused("a weight of a billion", budget("evil/a", `{name: a, weight: 1000000000}`, ""), "spec.members[0].weight"),
		refused("an id that only the victim's namespace may have", budget("acme/next", `{name: a}`, ""), "spec.id", "may not have the id acme/next"),
		{
			name: "a budget without a role that has budgets", as: editor, do: objectAs(plainUser, budget("evil/a", `{name: a}`, "")),
			must: be("forbidden", `cannot create resource "federatedbudgets"`),
		},
		{
			name: "the id of the victim's budget, which both namespaces may have", as: editor, do: theft,
			must: be("the older object keeps it, and the victim's is served", "Accepted=False", "victim Accepted=True"),
		},
		{
			name: "10 budgets of 63 members each, whose Secrets are made in weir-system", as: editor, long: true, do: secretFlood(10, 63),
			must: be("64 Secrets at most; the victim's stay", "at most 64", "victim's stay"),
		},
		{
			name: "a hub at the metadata of a cloud", as: editor, do: budgetSettles(budget("evil/hub", `{name: hub}, {name: other}`, `, hub: {endpoint: "169.254.169.254:80", secretRef: {name: x}}`)),
			must: be("the controller does not connect, or has no credentials to", "status").without("TOPSECRET"),
		},
		{
			name: "a budget in the victim's namespace", as: editor, do: object(strings.Replace(budget("evil/a", `{name: a}`, ""), "generateName: evil-", "name: evil, namespace: shop", 1)),
			must: be("forbidden", "is forbidden"),
		},

		{name: "a call of the hub without a certificate", as: stranger, do: calls(nobody), must: be("no handshake", "Unavailable")},
		{name: "a call of the hub with a certificate of one's own", as: stranger, do: calls(selfSigned), must: be("no handshake", "Unavailable")},
		{name: "TLS 1.2 at the hub", as: stranger, do: oldTLSAt(func(w *world) string { return w.cluster.Controller.FederationAddress() }), must: be("no handshake", "protocol version not supported")},
		{name: "a member's certificate without its token", as: member, do: calls(withToken("")), must: unserved("Unauthenticated", "carries no token")},
		{name: "a member's certificate with a token that is made up", as: member, do: calls(withToken("x")), must: unserved("Unauthenticated", "is not the present one")},
		{name: "a member's certificate with another member's token", as: member, do: calls(othersToken), must: unserved("Unauthenticated", "is not the present one")},

		asks("a command that speaks for another member", unserved("PermissionDenied", "speaks for member"), func(r *federationpb.ApplyRequest) { r.Command.Member = ally }),
		asks("a command for a budget that does not list it", unserved("PermissionDenied", "does not list member"), func(r *federationpb.ApplyRequest) { r.Budget = evilBudget }),
		asks("a command for a budget that there is not", unserved("NotFound"), func(r *federationpb.ApplyRequest) { r.Budget = "world/none" }),
		asks("a budget's id of a megabyte", unserved("ResourceExhausted"), func(r *federationpb.ApplyRequest) { r.Budget = strings.Repeat("x", 1<<20) }),
		asks("another window than the budget's", unserved("FailedPrecondition"), func(r *federationpb.ApplyRequest) { r.WindowMicros = 1 }),
		asks("an operation that is the hub's own", unserved("InvalidArgument"), func(r *federationpb.ApplyRequest) { r.Command.Op = 99 }),
		asks("less than nothing", unserved("InvalidArgument"), func(r *federationpb.ApplyRequest) { r.Command.Min, r.Command.Want = -1, -1 }),
		asks("a holder's name of a megabyte", unserved("ResourceExhausted"), func(r *federationpb.ApplyRequest) { r.Command.Holder = strings.Repeat("x", 1<<20) }),
		asks("a demand of 2^50", unserved("InvalidArgument", "demand"), func(r *federationpb.ApplyRequest) { r.Command.Demand = 1 << 50 }),
		asks("a holder's name of 10 KB", unserved("InvalidArgument"), func(r *federationpb.ApplyRequest) { r.Command.Holder = strings.Repeat("x", 10<<10) }),
		asks("the use of 1,000 windows", unserved("InvalidArgument", "usage of 1000 windows"), func(r *federationpb.ApplyRequest) {
			r.Command.Usage = make([]*federationpb.Usage, 1000)
			for i := range r.Command.Usage {
				r.Command.Usage[i] = &federationpb.Usage{Index: int64(i)}
			}
		}),
		asks("the use of 100,000 windows", unserved("ResourceExhausted"), func(r *federationpb.ApplyRequest) {
			r.Command.Usage = make([]*federationpb.Usage, 100_000)
			for i := range r.Command.Usage {
				r.Command.Usage[i] = &federationpb.Usage{Index: int64(i)}
			}
		}),
		{name: "10^12 units, again and again for two windows", as: member, long: true, do: greed, must: be("no window grants more than the limit", "within the limit")},
		{name: "the epochs and numbers of commands that were answered, again", as: member, long: true, do: replays, must: be("no window grants more than the limit", "within the limit")},
		{name: "what the hub remembers of a budget that does not list it", as: member, do: observes(evilBudget), must: be("refused", "PermissionDenied")},
		{name: "a certificate in another member's name", as: member, do: renews(ally), must: be("it is in the member's own name", "certificate of "+foe)},
		{name: "a request for a certificate that is not one", as: member, do: renewsWith([]byte("x")), must: be("refused", "InvalidArgument")},
		{name: "50 calls at a time, for 3 s", as: member, long: true, do: hubFlood, must: be("all are answered", "0 without an answer")},
		{name: "a token whose Secret was deleted", as: member, do: deletedToken, must: unserved("Unauthenticated", "is not the present one")},
	}
}
