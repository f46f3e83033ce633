package main

// Series of other programs have the names of these, too. Every controller of Weir has
// weir_leader, and every sidecar weir_fleet_connected.
const (
	ofControllers = ` and on (instance) weir_leader`
	ofSidecars    = ` and on (instance) weir_fleet_connected`
)

// platform is for the team that runs Weir: every object, the stores and the controllers.
func platform() board {
	return board{
		uid: "weir-platform", title: "Weir / Platform",
		description: "For the team that runs Weir: whether all objects keep their promises, and whether stores and controllers work.",
		variables:   []variable{ofNamespaces()},
		rows: []row{
			{panels: []chart{
				{
					kind: stat, title: "Leaders", about: "Controllers that lead. It is 1; during a change of the leader 0.", unit: plain,
					steps:   []step{{Color: "red"}, {"green", new(1.0)}, {"red", new(2.0)}},
					queries: []query{{`sum(weir_leader) or vector(0)`, ""}},
				},
				{
					kind: stat, title: "Broken bounds", about: "Objects that admitted more than they promise since their spec changed last.", unit: plain, steps: bad("red", 1),
					queries: []query{{`sum(weir_condition{namespace=~"$namespace",condition="WithinBound",status="False"}) or vector(0)`, ""}},
				},
				{
					kind: stat, title: "Not ready", about: "Objects whose condition Ready is not True. The table below says why.", unit: plain, steps: bad("yellow", 1),
					queries: []query{{`sum(weir_condition{namespace=~"$namespace",condition="Ready",status!="True"}) or vector(0)`, ""}},
				},
				{
					kind: stat, title: "Unreachable", about: "Objects whose store, coordinator or hub does not answer.", unit: plain, steps: bad("red", 1),
					queries: []query{{`sum(weir_condition{namespace=~"$namespace",condition=~"StoreReachable|CoordinatorReachable|Connected",status="False"}) or vector(0)`, ""}},
				},
				{
					kind: stat, title: "Pods that enforce", about: "Pods that enforce the present generation of the policies that select them, as a part of those selected.", unit: ratio, steps: least(1),
					queries: []query{{`sum(weir_enforcers{namespace=~"$namespace"}) / sum(weir_enforcers_desired{namespace=~"$namespace"})`, ""}},
				},
				{
					kind: stat, title: "Sidecars", about: "Sidecars with a stream to a controller.", unit: plain, steps: neutral,
					queries: []query{{`sum(weir_coordinator_sessions)`, ""}},
				},
				{
					kind: stat, title: "Without a stream", about: "Sidecars without a stream to the controller. They go on with the configuration that they have.", unit: plain, steps: bad("yellow", 1),
					queries: []query{{`sum(1 - weir_fleet_connected{namespace=~"$namespace"})`, ""}},
				},
				{
					kind: stat, title: "Certificates", about: "Time until the first certificate expires. Each is renewed when two thirds of its life are over.", unit: seconds, steps: least(7 * 24 * 3600),
					queries: []query{{`min(weir_certificate_expiry_timestamp_seconds - time())`, ""}},
				},
			}},
			{title: "Guarantees", panels: []chart{
				{
					kind: table, title: "Conditions that are not as they should be", about: "Objects with a condition that is not good; kubectl describe has its message. The link opens the dashboard of the namespace.", unit: plain,
					queries: []query{{`max by (kind, namespace, name, condition, status) (weir_condition{namespace=~"$namespace",condition!~"Saturated|Learning|KeysFull|Stalled",status!="True"} or weir_condition{namespace=~"$namespace",condition=~"Saturated|Learning|KeysFull|Stalled",status="True"})`, ""}},
				},
				{
					kind: lines, title: "Room below the bound", about: "Units that the last window could have admitted beyond its limit without breaking the bound, for the ten limits, pools and budgets with the least. Below 0 a promise is broken. A gap is a window that was not measured.", unit: plain, steps: least(0),
					queries: []query{
						{`bottomk(10, weir_overshoot_bound{namespace=~"$namespace"} - weir_overshoot)`, "{{namespace}}/{{policy}}/{{limit}}"},
						{`bottomk(10, weir_fleet_pool_overshoot_bound{namespace=~"$namespace"} - weir_fleet_pool_overshoot)`, "pool {{namespace}}/{{pool}}"},
						{`bottomk(10, weir_budget_overshoot_bound{namespace=~"$namespace"} - weir_budget_overshoot)`, "budget {{namespace}}/{{budget}}"},
					},
				},
				{
					kind: lines, title: "Under-utilization", about: "Part of the limit that was left while requests were refused, for the ten limits, pools and budgets with the most.", unit: ratio,
					queries: []query{
						{`topk(10, weir_underutilization_ratio{namespace=~"$namespace"})`, "{{namespace}}/{{policy}}/{{limit}}"},
						{`topk(10, weir_fleet_pool_underutilization_ratio{namespace=~"$namespace"})`, "pool {{namespace}}/{{pool}}"},
						{`topk(10, weir_budget_underutilization_ratio{namespace=~"$namespace"})`, "budget {{namespace}}/{{budget}}"},
					},
				},
			}},
			stores(), controllers(), streams(), reconciles(), budgets(),
		},
	}
}

func stores() row {
	return row{title: "Stores", panels: []chart{
		{
			kind: lines, title: "Limits that are cut off", about: "Limits in pods that cannot reach their store and do what onStoreUnavailable says.", unit: plain,
			queries: []query{{`sum by (namespace, policy) (1 - weir_store_up{namespace=~"$namespace"})`, "{{namespace}}/{{policy}}"}},
		},
		{
			kind: lines, title: "Calls", about: "Calls of sidecars to stores, by their outcome. The controller is one of the stores.", unit: calls,
			queries: []query{{`sum by (type, address, outcome) (rate(weir_store_call_seconds_count{namespace=~"$namespace"}[$__rate_interval]))`, "{{type}} {{address}} {{outcome}}"}},
		},
		{
			kind: lines, title: "Time of a call, p99", about: "99 of 100 calls of sidecars to a store took no longer.", unit: seconds,
			queries: []query{{`histogram_quantile(0.99, sum by (le, type, address) (rate(weir_store_call_seconds_bucket{namespace=~"$namespace"}[$__rate_interval]) > 0))`, "{{type}} {{address}}"}},
		},
		{
			kind: lines, title: "Answers of the controller's store", about: "Requests for units to the store Controller, by the reason of the answer. Error is a defect.", unit: calls,
			queries: []query{{`sum by (reason) (rate(weir_coordinator_leases_total[$__rate_interval]))`, "{{reason}}"}},
		},
	}}
}

func budgets() row {
	return row{title: "Budgets of several clusters", panels: []chart{
		{
			kind: lines, title: "Division of the open window", about: "Units of the window, and those that each member was granted.", unit: plain,
			queries: []query{
				{`weir_budget_limit{namespace=~"$namespace"}`, "{{namespace}}/{{budget}} limit"},
				{`weir_budget_member_granted{namespace=~"$namespace"}`, "{{namespace}}/{{budget}} {{member}}"},
			},
		},
		{
			kind: lines, title: "Members that were heard of lately", about: "1 while the coordinator hears of the member. One without requests falls silent, too.", unit: plain,
			queries: []query{{`weir_budget_member_connected{namespace=~"$namespace"}`, "{{namespace}}/{{budget}} {{member}}"}},
		},
		{
			kind: lines, title: "Calls to this hub", about: "Calls of members, where this cluster is the hub of a budget.", unit: calls,
			queries: []query{{`sum by (method, refusal) (rate(weir_hub_calls_total[$__rate_interval]))`, "{{method}} {{refusal}}"}},
		},
	}}
}
