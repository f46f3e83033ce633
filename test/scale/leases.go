package main

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/weir-dev/weir/api/v1alpha1"
	"github.com/weir-dev/weir/pkg/twotier"
)

const (
	askers     = 64 // sidecars that ask
	asksAtOnce = 16 // of each
	asking     = 10 * time.Second
)

// measureLeases measures decisions that each take a lease over the stream.
func measureLeases(ctx context.Context, w *world) (section, error) {
	s := section{head: []string{"sidecars", "leases/s", "CPU of the leader", "leases/s of a core"}}
	f, err := newSidecars(ctx, w)
	if err != nil {
		return s, err
	}
	defer f.close()
	name := types.NamespacedName{Namespace: shopSpace, Name: "strict"}
	p := policyFor(name, shopApp, 1_000_000_000)
	p.Spec.Consistency.Mode = v1alpha1.StrictMode
	if err := w.kube.Create(ctx, p); err != nil {
		return s, err
	}
	if _, err := f.grow(ctx, askers); err != nil {
		return s, err
	}
	sleep(ctx, 2*windowLength*time.Second) // windows that began before the leader led have ended
	before, err := w.leases(ctx)
	if err != nil {
		return s, err
	}
	u, err := usageOf(w.leads.PID())
	if err != nil {
		return s, err
	}
	began := time.Now()
	refused := f.ask(ctx, name.Name)
	took := time.Since(began)
	u2, err := usageOf(w.leads.PID())
	if err != nil {
		return s, err
	}
	after, err := w.leases(ctx)
	if err != nil {
		return s, err
	}
	cpu := (u2.cpu - u.cpu).Seconds()
	each, perCore := (after-before)/took.Seconds(), (after-before)/cpu
	s.row(count(askers), count(int(each)), percent(cpu/took.Seconds()), count(int(perCore)))
	s.last = []goal{{"leases over streams, for each second of the leader's CPU", "≥ 30,000", count(int(perCore))}}
	if refused > 0 {
		return s, fmt.Errorf("%d of %.0f decisions were refused, or not decided by the controller, of a limit that nobody reaches", refused, after-before)
	}
	return s, nil
}

// ask has all sidecars decide as fast as they can, and returns how much the controller
// did not decide or refused.
func (f *sidecars) ask(ctx context.Context, of string) int64 {
	ctx, cancel := context.WithTimeout(ctx, asking)
	defer cancel()
	var refused atomic.Int64
	var running sync.WaitGroup
	for _, s := range f.all {
		for range asksAtOnce {
			running.Go(func() {
				for ctx.Err() == nil {
					if d, err := s.check(ctx, of); (err != nil || !d.Allowed || d.Source == twotier.FromLocalShare) && ctx.Err() == nil {
						refused.Add(1)
					}
				}
			})
		}
	}
	running.Wait()
	return refused.Load()
}

// leases returns how many leases the leader answered.
func (w *world) leases(ctx context.Context) (n float64, err error) {
	figures, err := w.figuresOf(ctx, w.leads)
	for name, v := range figures {
		if strings.HasPrefix(name, "weir_coordinator_leases_total{") {
			n += v
		}
	}
	return n, err
}
