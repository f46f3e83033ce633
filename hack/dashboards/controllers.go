package main

func controllers() row {
	return row{title: "Controllers", panels: []chart{
		{
			kind: lines, title: "Leader", about: "1 for the controller that leads.", unit: plain,
			queries: []query{{`weir_leader`, "{{pod}}"}},
		},
		{
			kind: lines, title: "Memory", about: "Resident memory of controllers and webhooks, and where the Go runtime begins to work against more. Without a limit of the container there is no such line.", unit: bytesUnit,
			queries: []query{
				{`process_resident_memory_bytes` + ofControllers, "{{pod}}"},
				{`max(go_gc_gomemlimit_bytes < 1e15` + ofControllers + `)`, "limit"},
			},
		},
		{
			kind: lines, title: "Injections", about: "Pods that the API server asked the webhooks about, by what became of them, and reviews that were refused.", unit: calls,
			queries: []query{
				{`sum by (result) (rate(weir_injections_total[$__rate_interval]))`, "{{result}}"},
				{`sum by (code) (rate(weir_reviews_refused_total[$__rate_interval]))`, "answered {{code}}"},
			},
		},
		{
			kind: lines, title: "Defects", about: "Requests answered with 500, and rows of sidecars that the controller could not read. All are 0, or the logs say why.", unit: plain,
			queries: []query{
				{`sum(increase(weir_panics_total{namespace=~"$namespace"}[$__rate_interval]))`, "panics"},
				{`sum(increase(weir_errors_total{namespace=~"$namespace"}[$__rate_interval]))`, "requests without a decision"},
				{`sum(increase(weir_coordinator_rejected_rows_total[$__rate_interval]))`, "rejected rows"},
			},
		},
	}}
}

func streams() row {
	return row{title: "Streams to sidecars", panels: []chart{
		{
			kind: lines, title: "Streams", about: "Sidecars that each controller serves, and those that wait at a replica until it leads.", unit: plain,
			queries: []query{{`weir_coordinator_sessions`, "{{pod}}"}, {`weir_coordinator_waiting`, "{{pod}} waiting"}},
		},
		{
			kind: lines, title: "Streams that ended", about: "By the code of gRPC, and connections and pods that a bound of the fleet's port turned away.", unit: calls,
			queries: []query{
				{`sum by (code) (rate(weir_coordinator_sessions_closed_total[$__rate_interval]))`, "{{code}}"},
				{`sum by (bound) (rate(weir_coordinator_turned_away_total[$__rate_interval]))`, "beyond {{bound}}"},
			},
		},
		{
			kind: lines, title: "Authentications", about: "Tokens that sidecars presented, by the result of their review.", unit: calls,
			queries: []query{{`sum by (result) (rate(weir_coordinator_authentications_total[$__rate_interval]))`, "{{result}}"}},
		},
		{
			kind: lines, title: "Configurations", about: "Configurations that were sent to sidecars, and their answers.", unit: calls,
			queries: []query{
				{`sum(rate(weir_coordinator_pushes_total[$__rate_interval]))`, "sent"},
				{`sum by (result) (rate(weir_coordinator_acknowledgements_total[$__rate_interval]))`, "{{result}}"},
			},
		},
	}}
}

func reconciles() row {
	return row{title: "Reconciles", panels: []chart{
		{
			kind: lines, title: "Reconciles", about: "By their result. An error is tried again.", unit: calls,
			queries: []query{{`sum by (controller, result) (rate(controller_runtime_reconcile_total[$__rate_interval])` + ofControllers + `)`, "{{controller}} {{result}}"}},
		},
		{
			kind: lines, title: "Time of a reconcile, p99", about: "99 of 100 reconciles took no longer.", unit: seconds,
			queries: []query{{`histogram_quantile(0.99, sum by (le, controller) (rate(controller_runtime_reconcile_time_seconds_bucket[$__rate_interval])` + ofControllers + `) > 0)`, "{{controller}}"}},
		},
		{
			kind: lines, title: "Objects that wait", about: "Objects in the queue of each controller.", unit: plain,
			queries: []query{{`sum by (name) (workqueue_depth` + ofControllers + `)`, "{{name}}"}},
		},
		{
			kind: lines, title: "Requests to the API server", about: "By method and code. 429 is a bound of the server, 5xx an error.", unit: calls,
			queries: []query{{`sum by (method, code) (rate(rest_client_requests_total[$__rate_interval])` + ofControllers + `)`, "{{method}} {{code}}"}},
		},
	}}
}
