package main

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"
)

// Goals of the proxy: what it adds beside what the bare ReverseProxy adds, and what its median
// adds beside that of haproxy.
const (
	medianGoal, tailGoal = 1.1, 1.25
	haproxyGoal          = 1.3
)

// proxyRounds is odd, so that a median is a measurement. They are many: a 99th percentile
// is of few requests of a round, and the machine has a say in it.
const proxyRounds = 41

// lead is how long requests are sent before they count, for what a way did while it was
// not its turn, such as to close connections, is not what a request costs.
const lead = 300 * time.Millisecond

// overProxy shows what it takes to go through the sidecar instead of straight to the app.
func overProxy(show func(*table)) error {
	w, err := openWays()
	if err != nil {
		return err
	}
	defer w.close()
	time.Sleep(2 * time.Second) // what the start left behind is collected
	for _, perSecond := range []int{100, 1000, 5000} {
		taken, err := w.measure(perSecond)
		if err != nil {
			return err
		}
		show(w.table(perSecond, taken))
	}
	return nil
}

// latencies are a way's, by round, in nanoseconds.
type latencies struct{ p50, p99 []float64 }

// measure lets the ways take turns, in each round in another order, at that many requests a second.
func (w *ways) measure(perSecond int) (taken []latencies, err error) {
	turn := time.Second
	if perSecond < 1000 {
		turn = 2 * time.Second // for as many requests as a 99th percentile needs
	}
	taken = make([]latencies, len(w.all))
	order := rand.New(rand.NewPCG(3, 4))
	for range proxyRounds {
		for _, i := range order.Perm(len(w.all)) { // so no one always follows the same one
			_, early := openLoop(w.all[i].callers, perSecond, lead)
			took, err := openLoop(w.all[i].callers, perSecond, turn)
			if err := errors.Join(early, err); err != nil {
				return nil, fmt.Errorf("%s at %d requests/s: %w", w.all[i].name, perSecond, err)
			}
			taken[i].p50 = append(taken[i].p50, percentile(took, 500))
			taken[i].p99 = append(taken[i].p99, percentile(took, 990))
		}
	}
	return taken, nil
}

func (w *ways) table(perSecond int, taken []latencies) *table {
	t := &table{
		title: fmt.Sprintf("Through a proxy, %d requests/s", perSecond),
		note: fmt.Sprintf("Open loop over %d connections that stay open, HTTP/1.1, every proxy and the app a process of its own, one after the other in each of %d rounds, in an order that is drawn by lot. "+
			"The sidecar leases from a Redis and seldom asks it. Added is the time that a way takes longer than the direct one in the same round, beside it its ratio to what a bare ReverseProxy adds, "+
			"in which two processes take part: their mean is what counts, and their own ratios show what a ratio is worth.", callers, proxyRounds),
		head: []string{"", "p50 µs", "p99 µs", "p50 added µs", "ratio", "95 %", "p99 added µs", "ratio", "95 %", ""},
	}
	bare := latencies{
		p50: means(taken[barely].p50, taken[barelyToo].p50),
		p99: means(taken[barely].p99, taken[barelyToo].p99),
	}
	for i, way := range w.all {
		cells := []string{way.name, micros(middle(taken[i].p50)), micros(middle(taken[i].p99)), "", "", "", "", "", "", ""}
		if i != straight {
			mid := additionTo(taken[straight].p50, bare.p50, taken[i].p50)
			tail := additionTo(taken[straight].p99, bare.p99, taken[i].p99)
			cells = slices.Concat(cells[:3], mid.cells(), tail.cells(), []string{""})
			if i == sidecar {
				over := additionTo(taken[straight].p50, taken[haproxy].p50, taken[i].p50)
				cells[9] = fmt.Sprintf("goals ≤ %.2f: %s, ≤ %.2f: %s; p50 added is %s (%s) × haproxy's, goal ≤ %.1f: %s", medianGoal, mid.reaches(medianGoal),
					tailGoal, tail.reaches(tailGoal), over.cells()[1], over.cells()[2], haproxyGoal, over.reaches(haproxyGoal))
			}
		}
		t.add(cells...)
	}
	return t
}

// means returns the mean of two figures of each round.
func means(a, b []float64) []float64 {
	both := make([]float64, len(a))
	for i := range both {
		both[i] = (a[i] + b[i]) / 2
	}
	return both
}

func micros(ns float64) string { return fmt.Sprintf("%.0f", ns/1000) }
