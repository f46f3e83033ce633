package main

// These select the series of the objects that the reader chose.
const (
	here    = `{namespace="$namespace"}`
	ofLimit = `{namespace="$namespace",policy=~"$policy"}`
	ofPool  = `{namespace="$namespace",pool=~"$pool"}`
	// The limit per key of a pool has series of its own at the sidecars. None of its requests has a
	// latency, and its slots are of each value.
	ofPoolItself = `{namespace="$namespace",pool=~"$pool",pool!~".+/key"}`
)

// slots selects the answers to requests for a slot of a pool or of its limit per key, by the decision.
func slots(decision string) string {
	return `weir_pool_requests_total{namespace="$namespace",pool=~"($pool)(/key)?",decision="` + decision + `"}`
}

// requests selects requests by the decision of a limit.
func requests(decision string) string {
	return `weir_requests_total{namespace="$namespace",policy=~"$policy",decision` + decision + `}`
}

// rate is how many a second, added up by labels.
func rate(by, counter string) string {
	return `sum by (` + by + `) (rate(` + counter + `[$__rate_interval]))`
}

// team is for the authors of an app, and shows one namespace.
func team() board {
	return board{
		uid: "weir-team", title: "Weir / Team",
		description: "For the team of an app: what the limits and pools of a namespace admit and refuse, and why.",
		variables: []variable{
			ofNamespace(),
			choice("policy", "Policy", `label_values(weir_condition{namespace="$namespace",kind="RateLimitPolicy"}, name)`),
			choice("pool", "Pool", `label_values(weir_condition{namespace="$namespace",kind="ConcurrencyPool"}, name)`),
		},
		rows: []row{
			{panels: []chart{
				{
					kind: stat, title: "Admitted", about: "Requests a second that limits admitted. A request counts once for each limit that applies to it.", unit: perSecond, steps: neutral,
					queries: []query{{`sum(rate(` + requests(`="admitted"`) + `[$__rate_interval]))`, ""}},
				},
				{
					kind: stat, title: "Refused", about: "Part of the decisions of limits that refused a request.", unit: ratio, steps: share(0.05, 0.5),
					queries: []query{{`sum(rate(` + requests(`!~"admitted|shadow_refused|failed_open"`) + `[$__rate_interval])) / sum(rate(` + requests(`!=""`) + `[$__rate_interval]))`, ""}},
				},
				{
					kind: stat, title: "Would refuse", about: "Requests a second that limits in mode Shadow would have refused, and let pass.", unit: perSecond, steps: bad("yellow", 0.001),
					queries: []query{{`sum(rate(` + requests(`="shadow_refused"`) + `[$__rate_interval]))`, ""}},
				},
				{
					kind: stat, title: "Without the store", about: "Requests a second that onStoreUnavailable decided, because the store did not answer.", unit: perSecond, steps: bad("red", 0.001),
					queries: []query{{`sum(rate(` + requests(`=~"failed_open|failed_closed"`) + `[$__rate_interval]))`, ""}},
				},
				{
					kind: stat, title: "Longest Retry-After", about: "Time until the last of the open windows ends, which a client that is refused now has to wait at most. Limits with a key are left out.", unit: seconds, steps: neutral,
					queries: []query{{`clamp_min(max(weir_limit_window_resets_timestamp_seconds` + ofLimit + ` - time()), 0)`, ""}},
				},
				{
					kind: stat, title: "Slots in use", about: "Requests in flight, as a part of what the pools admit at once.", unit: ratio, steps: share(0.8, 0.95),
					queries: []query{{`sum(weir_fleet_pool_in_flight` + ofPool + `) / sum(weir_fleet_pool_limit` + ofPool + `)`, ""}},
				},
				{
					kind: stat, title: "Pods that enforce", about: "Pods that enforce the policies as they are written, as a part of those selected. The others serve with older limits, or with none.", unit: ratio, steps: least(1),
					queries: []query{{`sum(weir_enforcers` + ofLimit + `) / sum(weir_enforcers_desired` + ofLimit + `)`, ""}},
				},
				{
					kind: stat, title: "Not ready", about: "Objects of the namespace whose condition Ready is not True; kubectl describe says why.", unit: plain, steps: bad("yellow", 1),
					queries: []query{{`sum(weir_condition{namespace="$namespace",condition="Ready",status!="True"}) or vector(0)`, ""}},
				},
			}},
			{title: "Requests", panels: []chart{
				{
					kind: lines, title: "Admitted", about: "Requests a second that each limit admitted.", unit: perSecond,
					queries: []query{{rate("policy, limit", requests(`="admitted"`)), "{{policy}}/{{limit}}"}},
				},
				{
					kind: lines, title: "Refused, by cause", about: "refused: the limit is used up. failed_closed: the store does not answer. key_missing: the request has no key. cost_too_large: it costs more than the limit. failed_open let requests pass uncounted.", unit: perSecond,
					queries: []query{
						{rate("policy, limit, decision", requests(`!~"admitted|shadow_refused"`)) + ` > 0`, "{{policy}}/{{limit}} {{decision}}"},
						{rate("policy, limit", `weir_promised_refusals_total`+ofLimit) + ` > 0`, "{{policy}}/{{limit}} while the leader changed"},
					},
				},
				{
					kind: lines, title: "Shadow would refuse", about: "Requests that a limit or a pool in mode Shadow let pass, and would refuse in Enforce.", unit: perSecond,
					queries: []query{
						{rate("policy, limit", requests(`="shadow_refused"`)), "{{policy}}/{{limit}}"},
						{rate("pool", slots("shadow_refused")), "pool {{pool}}"},
					},
				},
				{
					kind: lines, title: "Time to decide", about: "How long sidecars took to decide a request, calls to the store included.", unit: seconds,
					queries: []query{
						{`histogram_quantile(0.5, ` + rate("le", `weir_decision_seconds_bucket`+here) + `)`, "p50"},
						{`histogram_quantile(0.99, ` + rate("le", `weir_decision_seconds_bucket`+here) + `)`, "p99"},
					},
				},
			}},
			windows(), pools(), latency(),
		},
	}
}

func windows() row {
	return row{title: "Limits", panels: []chart{
		{
			kind: lines, title: "Units", about: "Units of cost that the fleet admits and refuses in a second, as the leader measures them. In mode Shadow, those that it would refuse.", unit: plain,
			queries: []query{
				{`weir_admitted_per_second` + ofLimit, "{{policy}}/{{limit}} admitted"},
				{`weir_rejected_per_second` + ofLimit, "{{policy}}/{{limit}} refused"},
			},
		},
		{
			kind: lines, title: "Open window in use", about: "Units that the open window has admitted, as a part of its limit. Limits with a key have a window for each value, and are left out.", unit: ratio, steps: share(0.8, 1),
			queries: []query{{`weir_limit_window_used` + ofLimit + ` / weir_limit_window_limit`, "{{policy}}/{{limit}}"}},
		},
		{
			kind: bars, title: "Limits with the highest U", about: "Part of the limit that was left in the last window while requests were refused. It is lost by dividing the limit over pods: smaller leases lower it.", unit: ratio, steps: share(0.05, 0.2),
			queries: []query{{`topk(10, weir_underutilization_ratio` + ofLimit + `)`, "{{policy}}/{{limit}}"}},
		},
		{
			kind: lines, title: "Time until the window ends", about: "Retry-After of a request that is refused now, without its jitter. Limits with a key are left out.", unit: seconds,
			queries: []query{{`clamp_min(weir_limit_window_resets_timestamp_seconds` + ofLimit + ` - time(), 0)`, "{{policy}}/{{limit}}"}},
		},
	}}
}
