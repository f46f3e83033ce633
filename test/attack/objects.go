package main

import (
	"fmt"
	"strings"
)

const aLimit = `{name: all, rates: [{limit: 1, window: 5s}]}`

// objectRows are of policies and pools that an editor writes.
func objectRows() []row {
	limit := func(fields string) string {
		return `{limits: [{name: all, rates: [{limit: 1, window: 5s}], ` + fields + `}]}`
	}
	many := func(n int, text string) string {
		all := make([]string, n)
		for i := range all {
			all[i] = strings.ReplaceAll(text, "#", fmt.Sprint(i))
		}
		return strings.Join(all, ", ")
	}
	refused := func(name, spec string, parts ...string) row {
		return row{name: name, as: editor, do: policy(spec), must: be("refused, by "+code(parts[0]), append(parts, "error: ")...)}
	}
	rows := []row{
		// Sizes and numbers.
		refused("33 limits", `{limits: [`+many(33, `{name: l#, rates: [{limit: 1, window: 5s}]}`)+`]}`, "spec.limits"),
		refused("a limit of 2^63 - 1", `{limits: [{name: all, rates: [{limit: 9223372036854775807, window: 5s}]}]}`, "limits[0].rates[0].limit"),
		refused("a window of a nanosecond", `{limits: [{name: all, rates: [{limit: 1, window: 1ns}]}]}`, "limits[0].rates[0].window"),
		refused("a window of 99999 hours, four times", `{limits: [{name: all, rates: [{limit: 1, window: 99999h99999h99999h99999h}]}]}`, "limits[0].rates[0].window"),
		refused("33 overrides", limit(`key: {parts: [{type: ClientIP}]}, overrides: [`+many(33, `{values: [{parts: ["#"]}], rates: [{limit: 1, window: 5s}]}`)+`]`), "limits[0].overrides"),
		refused("a value of a key of a megabyte", limit(`key: {parts: [{type: ClientIP}]}, overrides: [{values: [{parts: ["`+strings.Repeat("x", 1<<20)+`"]}], rates: [{limit: 1, window: 5s}]}]`), "overrides[0].values[0].parts[0]"),
		refused("more keys than there is memory for", limit(`key: {maxKeys: 2147483647, parts: [{type: ClientIP}]}`), "limits[0].key.maxKeys"),
		refused("a burst of 10^18", `{limits: [{name: all, algorithm: TokenBucket, rates: [{limit: 1, burst: 1000000000000000000, window: 5s}]}]}`, "rates[0].burst"),
		refused("a negative cost", limit(`cost: {default: -1}`), "limits[0].cost.default"),
		refused("a policy of 1.6 MB, beyond what etcd stores", limit(`match: [`+many(8, `{paths: [`+many(16, `{type: Exact, value: "/`+strings.Repeat("p", 12_800)+`"}`)+`]}`)+`]`), "paths[0].value"),

		// Texts.
		refused("a limit's name with a line break and JSON", `{limits: [{name: "a\n{\"level\":\"error\"}", rates: [{limit: 1, window: 5s}]}]}`, "limits[0].name"),
		refused("a header's name with a line break", limit(`key: {parts: [{type: Header, header: {name: "X\r\nX-Admin: 1"}}]}`), "header.name"),
		refused("a regular expression that is not one", limit(`match: [{paths: [{type: RegularExpression, value: "(a"}]}]`), "not an RE2 expression"),
		refused("a regular expression that repeats a billion times", limit(`match: [{paths: [{type: RegularExpression, value: "((a{1000}){1000}){1000}"}]}]`), "not an RE2 expression"),
		refused("an expression of CEL of 2 KB", limit(`key: {parts: [{type: Expression, expression: "'`+strings.Repeat("x", 2048)+`'"}]}`), "expression"),
		refused("an expression of CEL that costs too much", limit(`match: [{expression: "[1,2,3,4,5,6,7,8,9].all(a, [1,2,3,4,5,6,7,8,9].all(b, [1,2,3,4,5,6,7,8,9].all(c, [1,2,3,4,5,6,7,8,9].all(d, [1,2,3,4,5,6,7,8,9].all(e, a+b+c+d+e > 0)))))"}]`), "expression"),
		refused("an expression of CEL with 300 brackets", limit(`match: [{expression: "`+strings.Repeat("(", 300)+"true"+strings.Repeat(")", 300)+`"}]`), "expression"),
		refused("a network that is not one", limit(`match: [{sourceCIDRs: ["0.0.0.0/0x"]}]`), "sourceCIDRs[0]"),
		{
			name: "a regular expression that backtracks elsewhere", as: editor, do: policy(limit(`match: [{paths: [{type: RegularExpression, value: "/(a+)+(b|b)*$"}]}]`)),
			must: be("admitted: RE2 takes linear time", "done").without("error:"),
		},
		{
			name: "a selector with 2,000 labels", as: editor, do: object(`{apiVersion: weir.dev/v1alpha1, kind: RateLimitPolicy, metadata: {generateName: evil-}, spec: {podSelector: {matchLabels: {` + many(2000, `l#: x`) + `}}, limits: [` + aLimit + `]}}`),
			must: or("admitted or refused, in time", "done", "error: "),
		},
		{
			name: "fields that do not exist", as: editor, do: policy(`{nodeName: x, limits: [` + aLimit + `]}`),
			must: be("a warning; nothing of it is stored", `unknown field "spec.nodeName"`),
		},

		// Rights.
		{
			name: "a policy in the victim's namespace", as: editor, do: object(`{apiVersion: weir.dev/v1alpha1, kind: RateLimitPolicy, metadata: {name: mine, namespace: shop}, spec: {podSelector: {}, limits: [` + aLimit + `]}}`),
			must: be("forbidden", "is forbidden"),
		},
		{
			name: "the status of a policy, which moves stores", as: editor, do: writeStatus,
			must: be("forbidden", "is forbidden"),
		},
		{
			name: "setting a counter back without the right to it", as: editor, do: object(`{apiVersion: weir.dev/v1alpha1, kind: RateLimitPolicy, metadata: {generateName: evil-, annotations: {weir.dev/reset: "all@1"}}, spec: {podSelector: {}, limits: [` + aLimit + `]}}`),
			must: be("forbidden, and the right is named", "takes the verb reset on ratelimitpolicies.weir.dev"),
		},
		{
			name: "the Secrets of the controller", as: editor, do: readSecrets,
			must: be("forbidden", "is forbidden"),
		},

		// Acts that the controller is made to do.
		{
			name: "a Secret of another's, which nobody lets the controller read", as: editor,
			do:   settles(`{store: {type: Redis, redis: {address: "[::1]:6379", secretRef: {name: weir-certificates}}}, limits: [` + aLimit + `]}`),
			must: be("the status says that it may not read it", "StoreReachable").without("BEGIN", "PRIVATE KEY"),
		},
		{
			name: "a policy's annotations with lines for the log", as: editor, do: logLines,
			must: be("no line of the log is the attacker's", "0 lines"),
		},
		{name: "a pool of 10^12 slots in 17 partitions", as: editor, do: object(`{apiVersion: weir.dev/v1alpha1, kind: ConcurrencyPool, metadata: {generateName: evil-}, spec: {podSelector: {}, limit: {max: 1000000000000}, partitions: [` + many(17, `{name: p#, guaranteedPercent: 1}`) + `]}}`), must: be("refused, by the field", "error: ", "spec.partitions")},
		{name: "partitions of more than all", as: editor, do: object(`{apiVersion: weir.dev/v1alpha1, kind: ConcurrencyPool, metadata: {generateName: evil-}, spec: {podSelector: {}, limit: {max: 10}, partitions: [` + many(3, `{name: p#, guaranteedPercent: 50}`) + `]}}`), must: be("refused, by the field", "error: ", "partitions")},
		{name: "a heartbeat each millisecond", as: editor, do: object(`{apiVersion: weir.dev/v1alpha1, kind: ConcurrencyPool, metadata: {generateName: evil-}, spec: {podSelector: {}, limit: {max: 10}, heartbeat: {interval: 1ms, leaseTTL: 2ms}}}`), must: be("refused, by the field", "error: ", "heartbeat")},
	}
	for _, to := range []struct{ what, address string }{
		{"this machine by IPv6", "[::1]:6379"},
		{"this machine by an IPv4 address in IPv6", "[::ffff:169.254.169.254]:80"},
		{"the metadata of a cloud", "169.254.169.254:80"},
		{"the metadata of a cloud by IPv6", "[fd00:ec2::254]:80"},
		{"no machine", "0.0.0.0:6379"},
	} {
		for _, kind := range []string{"Redis", "Postgres"} {
			where := `redis: {address: "` + to.address + `"}`
			if kind == "Postgres" {
				where = `postgres: {address: "` + to.address + `", database: weir, secretRef: {name: ` + postgresSecret + `}}`
			}
			rows = append(rows, row{
				name: fmt.Sprintf("a store of type %s at %s, %s", kind, to.what, to.address), as: editor,
				do:   settles(`{store: {type: ` + kind + `, ` + where + `}, limits: [` + aLimit + `]}`),
				must: be("the controller does not connect", "the controller may not connect to its address"),
			})
		}
	}
	return append(rows,
		row{
			name: "the API server as a store", as: editor, do: apiServerAsStore,
			must: be("the controller does not connect", "its address is that of the API server"),
		},
		row{
			name: "a store that answers like an SSH server", as: editor, do: listener("SSH-2.0-OpenSSH_9.0 TOPSECRET\r\n"),
			must: be("the status has nothing of the answer", "StoreReachable").without("TOPSECRET", "SSH-2.0"),
		},
		row{
			name: "a store that answers like a web server", as: editor, do: listener("HTTP/1.1 400 Bad Request\r\nServer: TOPSECRET\r\n\r\n"),
			must: be("the status has nothing of the answer", "StoreReachable").without("TOPSECRET", "Bad Request"),
		},
		row{
			name: "a store that answers with an error", as: editor, do: listener("-ERR TOPSECRET\r\n"),
			must: be("the status has nothing of the answer", "StoreReachable").without("TOPSECRET"),
		},
		row{
			name: "a store that never answers", as: editor, do: listener(""),
			must: be("it holds nobody up", "StoreReachable"),
		},
	)
}

// forged is what an attacker wants a line of the log to begin with.
const forged = `{"level":"error","msg":"forged"`
