package main

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/weir-dev/weir/test/bench/traffic"
)

// Turns are short, so that a busy moment of the machine is one round of many.
const (
	cpuLead = 50 * time.Millisecond // of a turn, before it counts
	cpuTurn = 250 * time.Millisecond
)

// Goals of the proxy's processor time, beside haproxy's.
const httpGoal, grpcGoal = 1.5, 3

// closedCases are loads in which one request always follows another. Of streams, those both ways
// have a read and a write for each message in each direction. Those one way have messages that come
// together, as many as the sender is ahead, in one direction or the other.
func closedCases() []proxyCase {
	return []proxyCase{
		overHTTP1(1, small),
		overHTTP1(32, small),
		overHTTP1(1000, small),
		overHTTP1(32, largeAnswer),
		overHTTP1(32, largeRequest),
		overGRPC(1, 32, unary),
		overGRPC(4, 8, unary),
		overGRPC(1000, 1, unary),
		overGRPC(4, 8, unaryLarge),
		overGRPC(4, 8, bothWays),
		overGRPC(4, 8, fromClient),
		overGRPC(4, 8, fromServer),
		overGRPC(4, 8, bothWayLarge),
	}
}

// costs are those of a way, by round.
type costs struct{ wall, processor []float64 } // ns per request

// overProxyCPU shows the processor time that a request takes in each proxy.
func overProxyCPU(show func(*table)) error {
	w, err := openWays()
	if err != nil {
		return err
	}
	defer w.close()
	w.hangUp()
	for _, c := range closedCases() {
		took, err := w.spend(c)
		if err != nil {
			return fmt.Errorf("%s: %w", c.name, err)
		}
		show(w.costTable(c, took))
	}
	return nil
}

// spend lets the ways take turns under a load, in each round in another order.
func (w *ways) spend(c proxyCase) ([]costs, error) {
	loads, closeAll, err := w.open(c)
	defer closeAll()
	if err != nil {
		return nil, err
	}
	took := make([]costs, len(w.all))
	order := rand.New(rand.NewPCG(5, 6))
	for range rounds {
		for _, i := range order.Perm(len(w.all)) {
			wall, processor, err := turn(loads[i], w.all[i].pid)
			if err != nil {
				return nil, fmt.Errorf("%s: %w", w.all[i].name, err)
			}
			took[i].wall = append(took[i].wall, wall)
			took[i].processor = append(took[i].processor, processor)
		}
	}
	return took, nil
}

// turn returns what a request took on the clock, and of the processors in a process.
func turn(l traffic.Load, pid int) (wall, processor float64, err error) {
	_, early := l.Closed(time.Now().Add(cpuLead))
	before, err := processClock(pid)
	if err := errors.Join(early, err); err != nil {
		return 0, 0, err
	}
	begin := time.Now()
	answered, err := l.Closed(begin.Add(cpuTurn))
	took := time.Since(begin)
	after, broken := processClock(pid)
	if err := errors.Join(err, broken); err != nil {
		return 0, 0, err
	}
	return float64(took) / float64(answered), float64(after-before) / float64(answered), nil
}

func (w *ways) costTable(c proxyCase, took []costs) *table {
	unit, goal := "request", httpGoal
	if c.grpc {
		unit, goal = "message", grpcGoal
	}
	t := &table{
		title: fmt.Sprintf("Processor time of a %s: %s", unit, c.name),
		note: fmt.Sprintf("Closed loop: a %[1]s follows when the one before was answered, or the server takes it. Processor time, of the user and of the system, is that of the proxy's process, "+
			"of direct that of the app. The ways take turns of %[2]v, in an order that is drawn by lot in each of %[3]d rounds.", unit, cpuTurn, rounds),
		head: []string{"", unit + "s/s", "processor µs", "× haproxy", "95 %", "× weir", "95 %", ""},
	}
	for i, way := range w.all {
		wall, _, _ := median(took[i].wall)
		processor, _, _ := median(took[i].processor)
		cells := []string{way.name, fmt.Sprintf("%.0f", float64(time.Second)/wall), fmt.Sprintf("%.1f", processor/1000)}
		for _, other := range []int{haproxy, sidecar} {
			ratio, low, high := median(quotients(took[i].processor, took[other].processor))
			cells = append(cells, fmt.Sprintf("%.2f", ratio), fmt.Sprintf("%.2f–%.2f", low, high))
		}
		verdict := ""
		if i == sidecar {
			ratio, _, high := median(quotients(took[i].processor, took[haproxy].processor))
			verdict = fmt.Sprintf("goal ≤ %.1f × haproxy: %s", goal, judge(ratio, high, goal, 0))
		}
		t.add(append(cells, verdict)...)
	}
	return t
}
