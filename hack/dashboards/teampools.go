package main

func pools() row {
	return row{title: "Pools", panels: []chart{
		{
			kind: lines, title: "Limit and requests in flight", about: "Requests that the pods may have in flight together, and that they have.", unit: plain,
			queries: []query{
				{`weir_fleet_pool_limit` + ofPool, "{{pool}} limit"},
				{`weir_fleet_pool_in_flight` + ofPool, "{{pool}} in flight"},
			},
		},
		{
			kind: lines, title: "Waiting", about: "Requests that wait for a slot, of each pool, of each partition and, as pool/key, of the values of a key.", unit: plain,
			queries: []query{
				{`weir_fleet_pool_queued` + ofPool, "{{pool}}"},
				{`sum by (pool) (weir_pool_queued{namespace="$namespace",pool=~"($pool)/key"})`, "{{pool}}"},
				{`sum by (pool, partition) (weir_pool_partition_queued` + ofPool + `)`, "{{pool}} {{partition}}"},
			},
		},
		{
			kind: lines, title: "Refused, by cause", about: "Requests a second that got no slot: of the pool or, as pool/key, of their value. key_missing: the request has no key.", unit: perSecond,
			queries: []query{{rate("pool, partition, reason", slots("refused")) + ` > 0`, "{{pool}} {{partition}} {{reason}}"}},
		},
	}}
}

func latency() row {
	return row{title: "What moves the pools", panels: []chart{
		{
			kind: lines, title: "Latency", about: "Latency of the backend now and without load, the median over pods. The limit falls when the first leaves the second behind.", unit: seconds,
			queries: []query{
				{`quantile by (pool) (0.5, weir_pool_latency_seconds` + ofPoolItself + ` > 0)`, "{{pool}}"},
				{`quantile by (pool) (0.5, weir_pool_baseline_seconds` + ofPoolItself + ` > 0)`, "{{pool}} without load"},
			},
		},
		{
			kind: lines, title: "Inferred limits", about: "Requests in flight that the backend bears, by the latency that pods see: the median, the least and the greatest over pods.", unit: plain,
			queries: []query{
				{`quantile by (pool) (0.5, weir_pool_inferred` + ofPoolItself + `)`, "{{pool}}"},
				{`min by (pool) (weir_pool_inferred` + ofPoolItself + `)`, "{{pool}} least"},
				{`max by (pool) (weir_pool_inferred` + ofPoolItself + `)`, "{{pool}} greatest"},
			},
		},
		{
			kind: lines, title: "Saturated and unused", about: "1 while requests find no slot, and the part of the limit that was free meanwhile. When both are high, load is spread unevenly over pods.", unit: plain,
			queries: []query{
				{`weir_condition{namespace="$namespace",name=~"$pool",kind="ConcurrencyPool",condition="Saturated",status="True"}`, "{{name}} saturated"},
				{`weir_fleet_pool_underutilization_ratio` + ofPool, "{{pool}} unused"},
			},
		},
		{
			kind: lines, title: "Pods without a share", about: "Pods that refuse every request, because their coordinator does not answer.", unit: plain,
			queries: []query{{`weir_fleet_pool_fenced` + ofPool, "{{pool}}"}},
		},
	}}
}
