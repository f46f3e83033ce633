package main

import (
	"fmt"
	"time"
)

// costTable is about the ways without the second bare proxy.
func (w *ways) costTable(c cpuCase, took []costs) *table {
	const ours, theirs = sidecar - 1, haproxy - 1
	t := &table{
		title: "Processor time of a request: " + c.name,
		note: fmt.Sprintf("Closed loop: a request follows when the one before was answered. Processor time, of the user and of the system, is that of the proxy's process, "+
			"of direct that of the app. The ways take turns of %v, in an order that is drawn by lot in each of %d rounds.", cpuTurn, rounds),
		head: []string{"", "requests/s", "processor µs", "× haproxy", "95 %", "× weir", "95 %", ""},
	}
	for i, way := range w.all {
		wall, _, _ := median(took[i].wall)
		processor, _, _ := median(took[i].processor)
		cells := []string{way.name, fmt.Sprintf("%.0f", float64(time.Second)/wall), fmt.Sprintf("%.1f", processor/1000)}
		for _, other := range []int{theirs, ours} {
			ratio, low, high := median(quotients(took[i].processor, took[other].processor))
			cells = append(cells, fmt.Sprintf("%.2f", ratio), fmt.Sprintf("%.2f–%.2f", low, high))
		}
		verdict := ""
		if i == ours {
			ratio, _, high := median(quotients(took[i].processor, took[theirs].processor))
			verdict = fmt.Sprintf("goal ≤ %.1f × haproxy: %s", c.goal, judge(ratio, high, c.goal, 0))
		}
		t.add(append(cells, verdict)...)
	}
	return t
}
