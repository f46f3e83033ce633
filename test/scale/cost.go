package main

import (
	"context"
	"fmt"
	"os"
	"runtime"
	"time"
)

// A cost is what processes took to do something.
type cost struct {
	leader, servers, tool time.Duration // CPU time
	writes                float64       // that the API server answered, but for leases
}

// cost returns what was taken until now.
func (w *world) cost(ctx context.Context) (c cost, err error) {
	if c.writes, _, err = w.requests(ctx); err != nil {
		return c, err
	}
	add := func(to *time.Duration, pid int) {
		u, failed := usageOf(pid)
		if failed != nil {
			err = failed
		}
		*to += u.cpu
	}
	if pid := w.leads.PID(); pid != 0 {
		add(&c.leader, pid)
	}
	for _, pid := range w.cluster.ServerPIDs() {
		add(&c.servers, pid)
	}
	add(&c.tool, os.Getpid())
	return c, err
}

// since returns what was taken after before.
func (c cost) since(before cost) cost {
	return cost{c.leader - before.leader, c.servers - before.servers, c.tool - before.tool, c.writes - before.writes}
}

// of returns the part of one of n.
func (c cost) of(n int) cost {
	d := time.Duration(n)
	return cost{c.leader / d, c.servers / d, c.tool / d, c.writes / float64(n)}
}

// alone is how many policies are created while no controller runs.
const alone = 1000

// floor says what creating policies costs without a controller, which nothing that one does
// makes less. Numbers of policies begin with from. It stops the controllers.
func (w *world) floor(ctx context.Context, from int) (string, error) {
	for i := range w.controllers {
		w.controllers[i].Stop()
	}
	before, err := w.cost(ctx)
	if err != nil {
		return "", err
	}
	began := time.Now()
	if err := each(alone, func(i int) error {
		return w.kube.Create(ctx, policyFor(policyName(from+i), policyName(from+i).Name, 1000))
	}); err != nil {
		return "", err
	}
	took := time.Since(began)
	after, err := w.cost(ctx)
	one := after.since(before).of(alone)
	least := (one.servers + one.tool) * time.Duration(from) / time.Duration(runtime.NumCPU())
	return fmt.Sprintf("Creating %s more while no controller ran took %s; for each etcd and Kubernetes took %s of CPU time, and this tool %s. "+
		"At that, creating %s keeps all cores busy for %.0f s, whatever a controller does.",
		count(alone), seconds(took), milliseconds(one.servers), milliseconds(one.tool), count(from), least.Seconds()), err
}

func milliseconds(d time.Duration) string {
	return fmt.Sprintf("%.1f ms", float64(d)/float64(time.Millisecond))
}
