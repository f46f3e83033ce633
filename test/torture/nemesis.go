package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/weir-dev/weir/internal/controlplane/inject"
	"github.com/weir-dev/weir/internal/testing/devcluster"
)

// run injects the faults of a schedule and returns when all have healed.
func (w *world) run(ctx context.Context, faults []fault) error {
	began := time.Now()
	var injected errgroup.Group
	for _, f := range faults {
		if !sleep(ctx, time.Until(began.Add(f.at))) {
			break
		}
		injected.Go(func() error {
			w.say("%6.1fs %s", time.Since(began).Seconds(), w.describe(f))
			if err := w.inject(ctx, f); err != nil {
				return fmt.Errorf("%s: %w", w.describe(f), err)
			}
			return nil
		})
	}
	return errors.Join(injected.Wait(), ctx.Err())
}

// describe names a fault and what it breaks.
func (w *world) describe(f fault) string {
	switch f.kind {
	case killStore, pauseStore, cutStore, delayStore, setStoreClock, loseStore, flushStore, promoteStore, fillDisk, failOver:
		return f.String() + " (" + w.stores[f.target].name + ")"
	case movePolicy:
		return f.String() + " (" + w.shops[f.shop].name + " to " + w.stores[f.target].name + ")"
	case killSidecar, pauseSidecar, editPolicy:
		return f.String() + " (" + w.shops[f.shop].name + ")"
	default:
		return f.String()
	}
}

// inject lets a fault happen and heals it.
func (w *world) inject(ctx context.Context, f fault) error {
	// Every fault heals, also when the run is broken off.
	healed := context.WithoutCancel(ctx)
	wait := func() { sleep(ctx, f.lasts) }
	defer w.turn(f)()
	switch f.kind {
	case killSidecar:
		w.shops[f.shop].restarts()
		return w.signalSidecar(ctx, f, syscall.SIGKILL)
	case pauseSidecar:
		err := w.signalSidecar(ctx, f, syscall.SIGSTOP)
		wait()
		return errors.Join(err, w.signalSidecar(healed, f, syscall.SIGCONT))
	case killStore:
		w.stores[f.target].kill()
		wait()
		return w.stores[f.target].restart(healed)
	case pauseStore:
		w.stores[f.target].signal(syscall.SIGSTOP)
		wait()
		w.stores[f.target].signal(syscall.SIGCONT)
	case loseStore:
		w.stores[f.target].kill()
		wait()
		w.stores[f.target].clock.Step(f.by)
		return w.stores[f.target].restart(healed)
	case flushStore:
		w.stores[f.target].flush(healed)
	case fillDisk:
		err := w.stores[f.target].fill(true)
		wait()
		return errors.Join(err, w.stores[f.target].fill(false), w.stores[f.target].revive(healed))
	case promoteStore:
		w.stores[f.target].kill()
		wait()
		return w.stores[f.target].promote(healed)
	case editPolicy:
		return w.shops[f.shop].edit(healed, w.sites[0].kube, f.limit)
	case movePolicy:
		err := w.shops[f.shop].move(healed, w.sites[0].kube, w.stores[f.target])
		wait()
		return errors.Join(err, w.shops[f.shop].move(healed, w.sites[0].kube, w.shops[f.shop].store))
	case cutStore:
		way, healed := w.stores[f.target].way(true)
		way.Cut()
		wait()
		healed()
		way.Heal()
	case delayStore:
		way, _ := w.stores[f.target].way(false)
		way.SetDelay(f.by)
		wait()
		way.SetDelay(0)
	case failOver:
		w.stores[f.target].group.failOver(healed)
	case setStoreClock:
		w.stores[f.target].clock.Step(f.by)
	case setNodeClock:
		w.nodes[w.sites[f.target/perSite].node(f.target%perSite)].Step(f.by)
	case killLeader:
		w.controller(f).Kill()
		wait()
		return w.start(healed, w.controller(f))
	case stopLeader:
		w.controller(f).Stop()
		wait()
		return w.start(healed, w.controller(f))
	case pauseLeader:
		pid := w.controller(f).PID()
		if pid == 0 {
			return nil // it could not be started again
		}
		_ = syscall.Kill(-pid, syscall.SIGSTOP) // it may have ended
		wait()
		_ = syscall.Kill(-pid, syscall.SIGCONT)
	case pauseServer:
		w.sites[f.target].cluster.SignalServer(syscall.SIGSTOP)
		wait()
		w.sites[f.target].cluster.SignalServer(syscall.SIGCONT)
	case cutFleet:
		w.sites[f.target].fleet.Cut()
		wait()
		w.sites[f.target].fleet.Heal()
	case delayFleet:
		w.sites[f.target].fleet.SetDelay(f.by)
		wait()
		w.sites[f.target].fleet.SetDelay(0)
	case cutHub:
		w.sites[0].hub.Cut()
		wait()
		w.sites[0].hub.Heal()
	case delayHub:
		w.sites[0].hub.SetDelay(f.by)
		wait()
		w.sites[0].hub.SetDelay(0)
	}
	return nil
}

// turn waits until the fault of its controller or server before this one has healed, which
// may take longer than planned, and returns what ends this one.
func (w *world) turn(f fault) (over func()) {
	var turn *sync.Mutex
	switch f.kind {
	case killLeader, stopLeader, pauseLeader:
		turn = &w.sites[f.target/controllers].turns[f.target%controllers]
	case killStore, pauseStore, loseStore, flushStore, promoteStore, fillDisk, failOver:
		turn = &w.stores[f.target].turn
	default:
		return func() {}
	}
	turn.Lock()
	return turn.Unlock
}

// start starts a controller. One that ends before it is ready, since it loses the lead or
// the API server stands still, is started again as a Deployment's would be.
func (w *world) start(ctx context.Context, c *devcluster.Controller) error {
	err := c.Start(ctx)
	for deadline := time.Now().Add(startTime); err != nil && time.Now().Before(deadline) && sleep(ctx, 200*time.Millisecond); {
		if _, absent := scrape(ctx, w.http, c.MetricsAddress()); absent == nil {
			return nil
		}
	}
	return err
}

// controller returns the one that a fault happens to.
func (w *world) controller(f fault) *devcluster.Controller {
	return w.sites[f.target/controllers].controllers[f.target%controllers]
}

// signalSidecar sends a signal to the sidecar of a shop on a node, if it runs.
func (w *world) signalSidecar(ctx context.Context, f fault, sig syscall.Signal) error {
	shop := w.shops[f.shop]
	pods, err := shop.site.podsOf(ctx, shop.name)
	if err != nil {
		return err
	}
	for _, pod := range pods {
		if !strings.HasPrefix(pod, nodeLabels[f.target]+"-") {
			continue
		}
		if pid, err := shop.site.cluster.Pods.PID(shop.name, pod, inject.ContainerName); err == nil {
			_ = syscall.Kill(-pid, sig) // it may have ended
		}
	}
	return nil
}

func sleep(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}
