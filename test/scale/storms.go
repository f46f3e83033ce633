package main

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/weir-dev/weir/api/v1alpha1"
)

// perSidecar is how many requests a second each sidecar gets while controllers end. The
// limit is half of their sum.
const perSidecar = 1

// storms ends the leading controller under load, in good order and without warning, and
// waits until all sidecars are back at the next.
func (f *sidecars) storms(ctx context.Context, s *section, n string) error {
	limit := int64(len(f.all)) * perSidecar * windowLength / 2
	var p v1alpha1.RateLimitPolicy
	if err := f.world.kube.Get(ctx, shopPolicy, &p); err != nil {
		return err
	}
	before := p.DeepCopy()
	p.Spec.Limits[0].Rates[0].Limit = limit
	if err := f.world.kube.Patch(ctx, &p, client.MergeFrom(before)); err != nil {
		return err
	}
	sleep(ctx, (2*windowLength+1)*time.Second) // windows with the limit before have ended
	if err := f.readClocks(ctx, shopPolicy.Name); err != nil {
		return err
	}
	l := f.startLoad(ctx, shopPolicy.Name, limit, perSidecar)
	defer l.stop()
	for _, storm := range []struct {
		name, goal string
		end        func(*replica)
	}{
		{"hand-over", "≤ 5 s after the next leads, 0 over", func(c *replica) { c.Stop() }},
		{"crash", "≤ 10 s after the next leads, 0 over", func(c *replica) { c.Kill() }},
	} {
		sleep(ctx, windowLength*time.Second)
		if err := f.awaitStandby(ctx); err != nil {
			return err
		}
		took, err := f.storm(ctx, storm.end)
		if err != nil {
			return fmt.Errorf("%s: %w", storm.name, err)
		}
		sleep(ctx, (windowLength+1)*time.Second)
		over, _ := l.over()
		f.world.say("%s: %s; %d over", storm.name, took, over)
		s.last = append(s.last, goal{
			figure: fmt.Sprintf("%s sidecars back after a %s, %d requests/s", n, storm.name, len(f.all)*perSidecar),
			want:   storm.goal, measured: fmt.Sprintf("%s, %d over", took, over),
		})
	}
	if err := f.measured(ctx); err != nil {
		return err
	}
	l.stop()
	s.notes = append(s.notes, l.text())
	if err := l.wrong(); err != nil {
		return err
	}
	return f.agree(ctx, l)
}

// readClocks has every sidecar read the limit of a policy from the store once, and so learn the
// store's clock. One that never had an answer admits on its local share by its own clock, since
// it cannot name a window of the store: what it admits could not be held against a window.
func (f *sidecars) readClocks(ctx context.Context, of string) error {
	return each(len(f.all), func(i int) error {
		return await(ctx, converge, "that a sidecar reads the store's clock", func() bool { return f.all[i].read(ctx, of) == nil })
	})
}

// awaitStandby waits until all sidecars wait at the replica that does not lead. That takes a while after it
// has started.
func (f *sidecars) awaitStandby(ctx context.Context) error {
	w := f.world
	return await(ctx, converge, "that all sidecars wait at the other replica", func() bool {
		for i := range w.controllers {
			if c := &w.controllers[i]; c != w.leads {
				figures, err := w.figuresOf(ctx, c)
				return err == nil && figures["weir_coordinator_waiting"] >= float64(len(f.all))
			}
		}
		return false
	})
}

// measured waits, under load, until the status reports what a window admitted. A leader
// measures those that began when it knew every sidecar, and each of the leaders before may
// have ended within the first of them.
func (f *sidecars) measured(ctx context.Context) error {
	return await(ctx, 3*windowLength*time.Second+statusTime, "a status that reports a window", func() bool {
		var p v1alpha1.RateLimitPolicy
		return f.world.kube.Get(ctx, shopPolicy, &p) == nil && reportsWindow(&p)
	})
}

// statusTime is how long the status may take to follow what happens.
const statusTime = 30 * time.Second

// agree waits until the status agrees with what a load was admitted that has ended.
func (f *sidecars) agree(ctx context.Context, l *load) error {
	sleep(ctx, windowLength*time.Second) // the last window has ended
	var disputed error
	err := await(ctx, statusTime, "a status that agrees with what was admitted", func() bool {
		var p v1alpha1.RateLimitPolicy
		if disputed = f.world.kube.Get(ctx, shopPolicy, &p); disputed == nil {
			disputed = l.disputed(&p)
		}
		return disputed == nil
	})
	return errors.Join(err, disputed)
}

// storm ends the leader, and starts it again when all are back.
func (f *sidecars) storm(ctx context.Context, end func(*replica)) (took string, err error) {
	w := f.world
	old := w.leads
	before, err := w.figuresOf(ctx, old)
	if err != nil {
		return "", err
	}
	messages := f.messages.Load()
	began := time.Now()
	var ended sync.WaitGroup
	ended.Go(func() { end(old) }) // which takes until its process has ended
	defer ended.Wait()
	if err := w.awaitLeader(ctx, old); err != nil {
		return "", err
	}
	led := time.Since(began)
	if err := f.awaitBack(ctx, uint64(before["weir_coordinator_term"])); err != nil {
		return "", err
	}
	back := time.Since(began)
	u, err := usageOf(w.leads.PID())
	if err != nil {
		return "", err
	}
	took = fmt.Sprintf("%s (the next led after %s, its most memory %s MiB, %d numbers of holders sent)",
		seconds(back-led), seconds(led), mib(u.most), f.messages.Load()-messages)
	ended.Wait()
	return took, old.Start(ctx)
}
