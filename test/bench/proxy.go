package main

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/weir-dev/weir/test/bench/traffic"
)

// Goals of the proxy: what its median adds beside that of haproxy, at the rate that the goal is for,
// and what its tail adds beside that of a bare ReverseProxy.
const (
	medianGoal, tailGoal = 1.3, 1.25
	goalRate             = 1000
)

// lead is how long requests are sent before they count, for what a way did while it was
// not its turn, such as to close connections, is not what a request costs.
const lead = 100 * time.Millisecond

// An openCase is a load that waits for no answer.
type openCase struct {
	proxyCase

	perSecond int
	turn      time.Duration
	rounds    int // odd, so that a median is a measurement
}

// openCases have most rounds where the goal is.
func openCases() []openCase {
	const few, many = 9, 25
	short, long := 400*time.Millisecond, 800*time.Millisecond
	return []openCase{
		{overHTTP1(32, small), 100, long, few}, // for as many requests as a 99th percentile needs
		{overHTTP1(32, small), 1000, short, many},
		{overHTTP1(32, small), 5000, short, few},
		{overHTTP1(1, small), 500, short, few}, // one at a time takes no more
		{overHTTP1(1000, small), 1000, short, few},
		{overHTTP1(32, largeAnswer), 1000, short, few},
		{overHTTP1(32, largeRequest), 1000, short, few},
		{overGRPC(1, 0, unary), 1000, short, few},
		{overGRPC(32, 0, unary), 1000, short, few},
		{overGRPC(1000, 0, unary), 1000, short, few},
		{overGRPC(4, 8, bothWays), 1000, short, few},
	}
}

// overProxy shows what it takes to go through the sidecar instead of straight to the app.
func overProxy(show func(*table)) error {
	w, err := openWays()
	if err != nil {
		return err
	}
	defer w.close()
	w.hangUp()
	for _, c := range openCases() {
		taken, err := w.time(c)
		if err != nil {
			return fmt.Errorf("%s at %d a second: %w", c.name, c.perSecond, err)
		}
		show(w.latencyTable(c, taken))
	}
	return nil
}

// latencies are a way's, by round, in nanoseconds.
type latencies struct{ p50, p99 []float64 }

// time lets the ways take turns, in each round in another order.
func (w *ways) time(c openCase) (taken []latencies, err error) {
	loads, closeAll, err := w.open(c.proxyCase)
	defer closeAll()
	if err != nil {
		return nil, err
	}
	taken = make([]latencies, len(w.all))
	order := rand.New(rand.NewPCG(3, 4))
	for range c.rounds {
		for _, i := range order.Perm(len(w.all)) { // so no one always follows the same one
			_, early := loads[i].Open(c.perSecond, lead)
			took, err := loads[i].Open(c.perSecond, c.turn)
			if err := errors.Join(early, err); err != nil {
				return nil, fmt.Errorf("%s: %w", w.all[i].name, err)
			}
			taken[i].p50 = append(taken[i].p50, traffic.Percentile(took, 500))
			taken[i].p99 = append(taken[i].p99, traffic.Percentile(took, 990))
		}
	}
	return taken, nil
}

func (w *ways) latencyTable(c openCase, taken []latencies) *table {
	t := &table{
		title: fmt.Sprintf("Through a proxy, %s, %s/s", c.name, grouped(int64(c.perSecond))),
		note: fmt.Sprintf("Open loop over connections that stay open. The ways take turns of %v, in an order that is drawn by lot in each of %d rounds. "+
			"Added is the time that a way takes longer than the direct one in the same round; it is set beside what haproxy adds, and what a bare ReverseProxy does, with 95 %% intervals.",
			c.turn, c.rounds),
		head: []string{"", "p50 µs", "p99 µs", "p50 added µs", "× haproxy", "× bare", "p99 added µs", "× haproxy", "× bare", ""},
	}
	for i, way := range w.all {
		cells := []string{way.name, micros(middle(taken[i].p50)), micros(middle(taken[i].p99)), "", "", "", "", "", "", ""}
		if i != straight {
			over := func(other int, of func(latencies) []float64) addition {
				return additionTo(of(taken[straight]), of(taken[other]), of(taken[i]))
			}
			p50, p99 := func(l latencies) []float64 { return l.p50 }, func(l latencies) []float64 { return l.p99 }
			mid, tail := over(haproxy, p50), over(haproxy, p99)
			midBare, tailBare := over(barely, p50), over(barely, p99)
			copy(cells[3:], []string{micros(mid.nanoseconds), mid.String(), midBare.String(), micros(tail.nanoseconds), tail.String(), tailBare.String()})
			if i == sidecar && c.perSecond == goalRate {
				cells[9] = fmt.Sprintf("p50 added, goal ≤ %.1f × haproxy: %s; p99 added, goal ≤ %.2f × bare: %s",
					medianGoal, mid.reaches(medianGoal), tailGoal, tailBare.reaches(tailGoal))
			}
		}
		t.add(cells...)
	}
	return t
}

func micros(ns float64) string { return fmt.Sprintf("%.0f", ns/1000) }
