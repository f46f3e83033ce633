package main

import (
	"fmt"
	"time"
)

// idleConnections are enough that what a process needs for itself does not count.
const idleConnections = 2000

// idleConnectionGoal is in bytes.
const idleConnectionGoal = 4 << 10

// idleMemory shows by how much each proxy grows with connections that have served a request.
func (w *ways) idleMemory() (*table, error) {
	t := &table{
		title: "Memory of an idle connection",
		note: fmt.Sprintf("By how much the resident memory of a process grows with %d connections that stay open behind a request each, before any other load. "+
			"What the kernel keeps for a connection is not counted.", idleConnections),
		head: []string{"", "KiB per connection", ""},
	}
	for i, way := range w.all[straight+1:] {
		time.Sleep(2 * time.Second) // what the start left behind is collected
		before, err := residenceOf(way.pid)
		if err != nil {
			return nil, err
		}
		idle, err := dialInTurn(way.address, idleConnections)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", way.name, err)
		}
		time.Sleep(2 * time.Second)
		after, err := residenceOf(way.pid)
		hangUp(idle)
		if err != nil {
			return nil, err
		}
		each := (after.resident - before.resident) / idleConnections
		verdict := ""
		if i == sidecar-2 { // without the direct way, and one of the bare ones
			verdict = fmt.Sprintf("goal ≤ %d KiB: %s", idleConnectionGoal>>10, met(each <= idleConnectionGoal))
		}
		t.add(way.name, fmt.Sprintf("%.1f", each/1024), verdict)
	}
	return t, nil
}

// dialInTurn opens connections of which few send their request at once, so that all of them
// together are never busy.
func dialInTurn(address string, n int) (all []caller, err error) {
	for len(all) < n {
		more, err := dial(address, min(callers, n-len(all)), request)
		if err != nil {
			hangUp(all)
			return nil, err
		}
		all = append(all, more...)
	}
	return all, nil
}
