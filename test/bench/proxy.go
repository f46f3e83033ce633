package main

import (
	"fmt"
	"time"
)

// Goals of the proxy: what it adds beside what the bare ReverseProxy adds, and memory.
const (
	medianGoal, tailGoal = 1.1, 1.25
	idleGoal, busyGoal   = 20 << 20, 32 << 20
)

// proxyRounds is odd, so that a median is a measurement. Rounds are long here: each holds
// the requests that a percentile needs.
const proxyRounds = 9

// overProxy shows what it takes to go through the sidecar instead of straight to the app.
func overProxy(show func(*table)) error {
	w, err := openWays()
	if err != nil {
		return err
	}
	defer w.close()
	time.Sleep(2 * time.Second) // what the start left behind is collected
	idle, err := residenceOf(w.all[sidecar].pid)
	if err != nil {
		return err
	}
	var busy residence
	for _, perSecond := range []int{100, 1000, 5000} {
		taken, peak, err := w.measure(perSecond)
		if err != nil {
			return err
		}
		if perSecond == 1000 {
			busy = peak
		}
		show(w.table(perSecond, taken))
	}
	t := &table{
		title: "Memory of the sidecar",
		note: "The most after any round. Resident memory includes pages of the program's file, which all sidecars of a node share; " +
			"its own is what a pod's limit and the kubelet's figures count of it.",
		head: []string{"", "resident MiB", "", "own MiB", ""},
	}
	for _, m := range []struct {
		name  string
		takes residence
		limit float64
	}{{fmt.Sprintf("idle, %d connections", callers), idle, idleGoal}, {"at 1,000 requests/s", busy, busyGoal}} {
		cells := []string{m.name}
		for _, bytes := range []float64{m.takes.resident, m.takes.own} {
			cells = append(cells, fmt.Sprintf("%.1f", bytes/(1<<20)), fmt.Sprintf("goal ≤ %.0f: %s", m.limit/(1<<20), met(bytes <= m.limit)))
		}
		t.add(cells...)
	}
	show(t)
	return nil
}

// latencies are a way's, by round, in nanoseconds.
type latencies struct{ p50, p99 []float64 }

// measure lets the ways take turns at so many requests a second. It also returns the most
// bytes that the sidecar had after a turn.
func (w *ways) measure(perSecond int) (taken []latencies, peak residence, err error) {
	turn := time.Second
	if perSecond < 1000 {
		turn = 2 * time.Second // for as many requests as a 99th percentile needs
	}
	taken = make([]latencies, len(w.all))
	for round := range proxyRounds + 1 {
		for i := range w.all {
			i = (i + round) % len(w.all) // nobody always follows the same one
			took, err := openLoop(w.all[i].callers, perSecond, turn)
			if err != nil {
				return nil, residence{}, fmt.Errorf("%s at %d requests/s: %w", w.all[i].name, perSecond, err)
			}
			if round == 0 {
				continue // it warms up
			}
			taken[i].p50 = append(taken[i].p50, percentile(took, 500))
			taken[i].p99 = append(taken[i].p99, percentile(took, 990))
		}
		now, err := residenceOf(w.all[sidecar].pid)
		if err != nil {
			return nil, residence{}, err
		}
		peak = peak.larger(now)
	}
	return taken, peak, nil
}

func (w *ways) table(perSecond int, taken []latencies) *table {
	t := &table{
		title: fmt.Sprintf("Through a proxy, %d requests/s", perSecond),
		note: fmt.Sprintf("Open loop over %d connections that stay open, HTTP/1.1, every proxy and the app a process of its own, one after the other in each of %d rounds. "+
			"The sidecar leases from a Redis, of which it is asked rarely. Added is what a way takes longer than the direct one in the same round, beside it its ratio to what the bare ReverseProxy adds.", callers, proxyRounds),
		head: []string{"", "p50 µs", "p99 µs", "p50 added µs", "ratio", "p99 added µs", "ratio", ""},
	}
	added50, added99 := make([]float64, len(taken)), make([]float64, len(taken))
	for i := range taken {
		added50[i] = addedTo(taken[straight].p50, taken[i].p50)
		added99[i] = addedTo(taken[straight].p99, taken[i].p99)
	}
	for i, way := range w.all {
		p50, _, _ := median(taken[i].p50)
		p99, _, _ := median(taken[i].p99)
		cells := []string{way.name, micros(p50), micros(p99), "", "", "", "", ""}
		if i != straight {
			r50, reached50 := beyond(added50[i], added50[barely], medianGoal)
			r99, reached99 := beyond(added99[i], added99[barely], tailGoal)
			cells = append(cells[:3], micros(added50[i]), r50, micros(added99[i]), r99, "")
			if i == sidecar {
				cells[7] = fmt.Sprintf("goals ≤ %.2f: %s, ≤ %.2f: %s", medianGoal, reached50, tailGoal, reached99)
			}
		}
		t.add(cells...)
	}
	return t
}

// beyond returns the ratio of two additions, and whether it reaches a goal. Where even the
// bare proxy adds nothing, the machine was too noisy to tell.
func beyond(added, bare, goal float64) (ratio, reached string) {
	if bare <= 0 {
		return "", "lost in noise"
	}
	return fmt.Sprintf("%.2f", added/bare), met(added <= goal*bare)
}

// addedTo returns the median over the rounds of what one figure exceeds another by.
func addedTo(base, figure []float64) float64 {
	more := make([]float64, len(base))
	for i := range base {
		more[i] = figure[i] - base[i]
	}
	mid, _, _ := median(more)
	return mid
}

func micros(ns float64) string { return fmt.Sprintf("%.0f", ns/1000) }
