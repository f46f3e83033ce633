package main

// capacity is for planning: how much there is of everything, and where its bound is.
func capacity() board {
	return board{
		uid: "weir-capacity", title: "Weir / Capacity",
		description: "How many pods, policies and keys there are, what they cost, and how far the bounds are.",
		variables:   []variable{ofNamespaces()},
		rows: []row{
			{panels: []chart{
				{
					kind: stat, title: "Pods", about: "Sidecars with a stream to a controller.", unit: plain, steps: neutral,
					queries: []query{{`sum(weir_coordinator_sessions)`, ""}},
				},
				{
					kind: stat, title: "Room for pods", about: "What the pods with a stream to the fullest controller take of its room, by how many limits each enforces.", unit: ratio, steps: share(0.7, 0.9),
					queries: []query{{`max(weir_coordinator_room_taken_ratio)`, ""}},
				},
				{
					kind: stat, title: "Objects", about: "Policies, pools and budgets.", unit: plain, steps: neutral,
					queries: []query{{`sum(weir_condition{namespace=~"$namespace",condition="Accepted"})`, ""}},
				},
				{
					kind: stat, title: "Memory", about: "Resident memory of the fullest controller, as a part of what its container leaves to the Go runtime. It is 0 without a limit of the container.", unit: ratio, steps: share(0.8, 0.95),
					queries: []query{{`max(process_resident_memory_bytes / on (instance) go_gc_gomemlimit_bytes` + ofControllers + `)`, ""}},
				},
				{
					kind: stat, title: "Round trips", about: "Calls to a store for an admitted request. Leases keep it far below 1; with consistency Strict it is 1 or more.", unit: plain, steps: share(0.2, 1),
					queries: []query{{`sum(rate(weir_store_round_trips_total{namespace=~"$namespace"}[$__rate_interval])) / sum(rate(weir_requests_total{namespace=~"$namespace",decision="admitted"}[$__rate_interval]))`, ""}},
				},
				{
					kind: stat, title: "Calls to stores", about: "Calls of all sidecars to all stores in a second.", unit: calls, steps: neutral,
					queries: []query{{`sum(rate(weir_store_round_trips_total{namespace=~"$namespace"}[$__rate_interval]))`, ""}},
				},
				{
					kind: stat, title: "Keys without room", about: "Limits whose new values of the key share counters, because a bound is met.", unit: plain, steps: bad("yellow", 1),
					queries: []query{{`count(sum by (namespace, policy, limit) (weir_keys_full{namespace=~"$namespace"} or weir_coordinator_keys_full{namespace=~"$namespace"})) or vector(0)`, ""}},
				},
			}},
			{title: "Pods and objects", panels: []chart{
				{
					kind: lines, title: "Pods of a controller", about: "Streams of each controller, and for how many its memory has room if each pod enforces one limit.", unit: plain,
					queries: []query{{`weir_coordinator_sessions`, "{{pod}}"}, {`min(weir_coordinator_room{of="pods"})`, "room"}},
				},
				{
					kind: lines, title: "Connections without a stream", about: "Open connections to the fleet's port by their state, and for how many without an authenticated stream there is room.", unit: plain,
					queries: []query{{`sum by (state) (weir_coordinator_connections)`, "{{state}}"}, {`min(weir_coordinator_room{of="connections"})`, "room"}},
				},
				{
					kind: lines, title: "Objects", about: "Policies, pools and budgets of all namespaces chosen, and limits in force.", unit: plain,
					queries: []query{
						{`sum by (kind) (weir_condition{namespace=~"$namespace",condition="Accepted"})`, "{{kind}}"},
						{`count(count by (namespace, policy, limit) (weir_limit_info{namespace=~"$namespace"}))`, "limits"},
					},
				},
				{
					kind: lines, title: "Series of a scrape", about: "Samples that a scrape of the fullest sidecar and controller brings. The PodMonitor refuses a sidecar with more than 10,000.", unit: plain, steps: bad("red", 10000),
					queries: []query{
						{`max(scrape_samples_scraped` + ofSidecars + `)`, "sidecar"},
						{`max(scrape_samples_scraped` + ofControllers + `)`, "controller"},
					},
				},
			}},
			keys(), memory(), traffic(), load(),
		},
	}
}

func keys() row {
	return row{title: "Keys", panels: []chart{
		{
			kind: lines, title: "Counters of a pod", about: "Values of a limit's key with a counter of their own, in the pod that has the most, for the ten largest limits.", unit: plain,
			queries: []query{{`topk(10, max by (namespace, policy, limit) (weir_active_keys{namespace=~"$namespace"}))`, "{{namespace}}/{{policy}}/{{limit}}"}},
		},
		{
			kind: lines, title: "Counters of all pods", about: "The same added up over pods. A value that several pods see counts for each.", unit: plain,
			queries: []query{{`topk(10, sum by (namespace, policy, limit) (weir_active_keys{namespace=~"$namespace"}))`, "{{namespace}}/{{policy}}/{{limit}}"}},
		},
		{
			kind: lines, title: "Units in hand", about: "Units that sidecars hold ahead of the requests that will spend them, for the ten limits with the most.", unit: plain,
			queries: []query{{`topk(10, sum by (namespace, policy, limit) (weir_lease_credits{namespace=~"$namespace"}))`, "{{namespace}}/{{policy}}/{{limit}}"}},
		},
	}}
}

func memory() row {
	return row{title: "Memory and CPU", panels: []chart{
		{
			kind: lines, title: "Memory of controllers", about: "Resident memory, and where the Go runtime begins to work against more.", unit: bytesUnit,
			queries: []query{{`process_resident_memory_bytes` + ofControllers, "{{pod}}"}, {`max(go_gc_gomemlimit_bytes < 1e15` + ofControllers + `)`, "limit"}},
		},
		{
			kind: lines, title: "Memory of sidecars", about: "Resident memory: the median and the greatest.", unit: bytesUnit,
			queries: []query{
				{`quantile(0.5, process_resident_memory_bytes{namespace=~"$namespace"}` + ofSidecars + `)`, "median"},
				{`max(process_resident_memory_bytes{namespace=~"$namespace"}` + ofSidecars + `)`, "greatest"},
			},
		},
		{
			kind: lines, title: "Memory budget of sidecars", about: "Part of the memory budget that is taken, in the fullest sidecar, by its use. A request that does not fit is refused.", unit: ratio, steps: share(0.8, 1),
			queries: []query{{`max by (class) (weir_sidecar_memory_taken_bytes{namespace=~"$namespace"} / on (instance) group_left() weir_sidecar_memory_size_bytes)`, "{{class}}"}},
		},
		{
			kind: lines, title: "CPU", about: "CPUs that controllers and all sidecars together use.", unit: plain,
			queries: []query{
				{`rate(process_cpu_seconds_total[$__rate_interval])` + ofControllers, "{{pod}}"},
				{`sum(rate(process_cpu_seconds_total{namespace=~"$namespace"}[$__rate_interval])` + ofSidecars + `)`, "all sidecars"},
			},
		},
	}}
}

func traffic() row {
	return row{title: "Calls and bytes", panels: []chart{
		{
			kind: lines, title: "Round trips for an admitted request", about: "Calls to the store, for the ten limits with the most.", unit: plain,
			queries: []query{{`topk(10, sum by (namespace, policy, limit) (rate(weir_store_round_trips_total{namespace=~"$namespace"}[$__rate_interval])) / (sum by (namespace, policy, limit) (rate(weir_requests_total{namespace=~"$namespace",decision="admitted"}[$__rate_interval])) > 0))`, "{{namespace}}/{{policy}}/{{limit}}"}},
		},
		{
			kind: lines, title: "Calls to stores", about: "Calls of sidecars in a second, by store.", unit: calls,
			queries: []query{{`sum by (type, address) (rate(weir_store_call_seconds_count{namespace=~"$namespace"}[$__rate_interval]))`, "{{type}} {{address}}"}},
		},
		{
			kind: lines, title: "Load of the leader", about: "Requests for units and heartbeats of pools that the leading controller answers in a second.", unit: calls,
			queries: []query{{`sum(rate(weir_coordinator_leases_total[$__rate_interval]))`, "requests for units"}, {`sum(rate(weir_coordinator_beats_total[$__rate_interval]))`, "heartbeats"}},
		},
		{
			kind: lines, title: "Bytes of controllers", about: "Bytes that the pods of controllers and webhooks receive and send.", unit: byteRate,
			queries: []query{
				{`rate(process_network_receive_bytes_total[$__rate_interval])` + ofControllers, "{{pod}} received"},
				{`rate(process_network_transmit_bytes_total[$__rate_interval])` + ofControllers, "{{pod}} sent"},
			},
		},
	}}
}

func load() row {
	return row{title: "Control plane", panels: []chart{
		{
			kind: lines, title: "Requests to the API server", about: "Requests of each controller in a second, and the bound for statuses (--api-requests). The requests beyond it wait.", unit: calls,
			queries: []query{{`sum by (pod) (rate(rest_client_requests_total[$__rate_interval])` + ofControllers + `)`, "{{pod}}"}, {`max(weir_api_requests_per_second_limit)`, "bound"}},
		},
		{
			kind: lines, title: "Time to measure the windows that ended, p99", about: "It delays figures in status, and no request.", unit: seconds,
			queries: []query{{`histogram_quantile(0.99, sum by (le) (rate(weir_coordinator_audit_seconds_bucket[$__rate_interval])))`, "p99"}},
		},
		{
			kind: lines, title: "Objects that wait", about: "Objects in the queue of each controller.", unit: plain,
			queries: []query{{`sum by (name) (workqueue_depth` + ofControllers + `)`, "{{name}}"}},
		},
	}}
}
