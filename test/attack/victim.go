package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/weir-dev/weir/api/v1alpha1"
	"github.com/weir-dev/weir/internal/controlplane/inject"
	"github.com/weir-dev/weir/internal/testing/devcluster/traffic"
)

const (
	victimSpace    = "shop"
	victimPods     = 2
	victimLimit    = 150 // in a window
	victimPressure = 3   // times as much is asked for
	victimWindow   = 5 * time.Second

	// settle is how long after its end a window's counts are final.
	settle = 700 * time.Millisecond
)

// A victim is a tenant that serves while others attack.
type victim struct {
	world *world
	tally *traffic.Tally
	load  *traffic.Load

	mu    sync.Mutex
	taken []time.Duration // by creations of pods
}

// openVictim starts the victim's pods and the load on them, and returns once they serve.
func (w *world) openVictim(ctx, background context.Context) error {
	tally, err := traffic.NewTally()
	if err != nil {
		return err
	}
	v := &victim{world: w, tally: tally, load: traffic.NewLoad(victimPressure * victimLimit / victimWindow.Seconds())}
	w.victim = v
	if err := w.openSpace(ctx, victimSpace, "victim", victimLimit); err != nil {
		return err
	}
	var targets []traffic.Target
	for i := range victimPods {
		pod := podOf(victimSpace, fmt.Sprintf("web-%d", i), appImage)
		pod.Spec.Containers[0].Env = append(pod.Spec.Containers[0].Env, corev1.EnvVar{Name: "TALLY", Value: tally.Address()})
		at, err := w.startPod(ctx, pod)
		if err != nil {
			return err
		}
		targets = append(targets, traffic.Target{Pod: at.Pod, Address: at.Proxy})
	}
	v.load.SetTargets(targets)
	w.running.Go(func() error { v.load.Run(background); return nil })
	return await(ctx, "that the victim's limit is served exactly", func() error {
		start := v.nextWindow()
		sleepUntil(ctx, start.Add(victimWindow+settle))
		if n := v.admitted(start); n != victimLimit {
			return fmt.Errorf("a window admits %d, want %d", n, victimLimit)
		}
		return v.problem(ctx)
	})
}

func (*victim) window() time.Duration { return victimWindow }

// nextWindow returns when the next window begins by this machine's clock, which is the
// controller's.
func (*victim) nextWindow() time.Time { return time.Now().Truncate(victimWindow).Add(victimWindow) }

// admitted returns what reached the victim's application in a window.
func (v *victim) admitted(start time.Time) int {
	return int(v.tally.Between(start, start.Add(victimWindow)))
}

// admission creates a pod of the victim as a dry run, and returns how long that took.
func (v *victim) admission(ctx context.Context) (time.Duration, error) {
	pod := podOf(victimSpace, "", appImage)
	pod.GenerateName = "web-"
	began := time.Now()
	err := v.world.kube.Create(ctx, pod, client.DryRunAll)
	took := time.Since(began)
	v.mu.Lock()
	v.taken = append(v.taken, took)
	v.mu.Unlock()
	isOurs := func(c corev1.Container) bool { return c.Name == inject.ContainerName }
	switch {
	case err != nil:
		return took, fmt.Errorf("a pod of the victim is not created: %w", err)
	case !slices.ContainsFunc(pod.Spec.InitContainers, isOurs):
		return took, errors.New("a pod of the victim is created without a sidecar")
	case took > answerTime:
		return took, fmt.Errorf("a pod of the victim is created in %s, want at most %s", took, answerTime)
	}
	return took, nil
}

// times returns how long the creations of pods took.
func (v *victim) times() []time.Duration {
	v.mu.Lock()
	defer v.mu.Unlock()
	return slices.Clone(v.taken)
}

// problem returns what the status of the victim's policy says that should not be.
func (v *victim) problem(ctx context.Context) error {
	var p v1alpha1.RateLimitPolicy
	if err := v.world.kube.Get(ctx, types.NamespacedName{Namespace: victimSpace, Name: policyName}, &p); err != nil {
		return err
	}
	s := p.Status
	switch {
	case s.Enforcement == nil || *s.Enforcement != v1alpha1.Enforcement{Desired: victimPods, Current: victimPods}:
		return fmt.Errorf("the victim's policy is enforced by %+v, want %d", s.Enforcement, victimPods)
	case !meta.IsStatusConditionTrue(s.Conditions, v1alpha1.WithinBoundCondition):
		return fmt.Errorf("the victim's policy has the conditions %+v, want WithinBound", s.Conditions)
	case len(s.Limits) != 1 || s.Limits[0].Overshoot.Worst == nil || *s.Limits[0].Overshoot.Worst != 0:
		text, err := json.Marshal(s.Limits)
		return errors.Join(err, fmt.Errorf("the victim's policy has the limits %s, want one that was never exceeded", text))
	}
	return nil
}

func sleepUntil(ctx context.Context, t time.Time) {
	timer := time.NewTimer(time.Until(t))
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}
