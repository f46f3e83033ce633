package main

import (
	"fmt"
	"time"

	"github.com/weir-dev/weir/test/bench/traffic"
)

// Goals of the memory of the sidecar's proxy, in bytes: of its own while it is idle and at 1,000 requests
// a second, and of an idle connection.
const (
	idleGoal, busyGoal = 5 << 20, 13 << 20
	idleConnectionGoal = 4 << 10
)

// overProxyMemory shows what the processes of proxies keep in memory. Each table is of new processes: what
// one load leaves behind would be room for the next.
func overProxyMemory(show func(*table)) error {
	for _, of := range []func(*ways) (*table, error){(*ways).processMemory, (*ways).idleMemory} {
		w, err := openWays()
		if err != nil {
			return err
		}
		t, err := of(w)
		w.close()
		if err != nil {
			return err
		}
		show(t)
	}
	return nil
}

// processMemory shows what each proxy keeps while it is idle, and under load.
func (w *ways) processMemory() (*table, error) {
	time.Sleep(2 * time.Second) // what the start left behind is collected
	idle, err := w.residences()
	if err != nil {
		return nil, err
	}
	busy, err := w.busyMemory()
	if err != nil {
		return nil, err
	}
	t := &table{
		title: "Memory of a proxy",
		note: fmt.Sprintf("With %d connections that have been idle for 2 s, and the most after any second of %d s at 1,000 requests/s. Resident memory includes pages of the program's file, "+
			"which all of a node share; its own is what a pod's limit and the kubelet's figures count of it.", callers, busySeconds),
		head: []string{"", "idle, resident MiB", "its own", "at 1,000 requests/s, resident MiB", "its own", ""},
	}
	for i, way := range w.all {
		if i == straight {
			continue
		}
		verdict := ""
		if i == sidecar {
			verdict = fmt.Sprintf("goals for its own ≤ %d: %s, ≤ %d: %s", idleGoal>>20, met(idle[i].own <= idleGoal), busyGoal>>20, met(busy[i].own <= busyGoal))
		}
		t.add(way.name, mebibytes(idle[i].resident), mebibytes(idle[i].own), mebibytes(busy[i].resident), mebibytes(busy[i].own), verdict)
	}
	return t, nil
}

func mebibytes(n float64) string { return fmt.Sprintf("%.1f", n/(1<<20)) }

// residences returns what each way's process has in memory.
func (w *ways) residences() (all []residence, err error) {
	for _, way := range w.all {
		r, err := residenceOf(way.pid)
		if err != nil {
			return nil, err
		}
		all = append(all, r)
	}
	return all, nil
}

// busySeconds is how long each way is busy. A garbage collector has made its rounds then.
const busySeconds = 10

// busyMemory returns the most that each way's process had after any second at 1,000 requests a second.
func (w *ways) busyMemory() (all []residence, err error) {
	for i, way := range w.all {
		var peak residence
		if i == straight {
			all = append(all, peak)
			continue
		}
		for range busySeconds {
			if _, err := way.callers.Open(1000, time.Second); err != nil {
				return nil, fmt.Errorf("%s: %w", way.name, err)
			}
			now, err := residenceOf(way.pid)
			if err != nil {
				return nil, err
			}
			peak = peak.larger(now)
		}
		all = append(all, peak)
	}
	return all, nil
}

// idleConnections are enough that what a process needs for itself does not count.
const idleConnections = 2000

// idleMemory shows by how much each proxy grows with connections that have served a request.
func (w *ways) idleMemory() (*table, error) {
	t := &table{
		title: "Memory of an idle connection",
		note: fmt.Sprintf("By how much the resident memory of a process grows with %d connections that stay open behind a request each, before any other load. "+
			"What the kernel keeps for a connection is not counted.", idleConnections),
		head: []string{"", "KiB per connection", ""},
	}
	for i, way := range w.all {
		if way.callers.Close(); i == straight {
			continue
		}
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
		idle.Close()
		if err != nil {
			return nil, err
		}
		each := (after.resident - before.resident) / idleConnections
		verdict := ""
		if i == sidecar {
			verdict = fmt.Sprintf("goal ≤ %d KiB: %s", idleConnectionGoal>>10, met(each <= idleConnectionGoal))
		}
		t.add(way.name, fmt.Sprintf("%.1f", each/1024), verdict)
	}
	return t, nil
}

// dialInTurn opens connections, and only few send their request at once, so that all of them
// together are never busy.
func dialInTurn(address string, n int) (all traffic.HTTP1, err error) {
	for len(all) < n {
		more, err := traffic.DialHTTP1(address, min(callers, n-len(all)), request)
		if err != nil {
			all.Close()
			return nil, err
		}
		all = append(all, more...)
	}
	return all, nil
}
