package main

import (
	"context"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/weir-dev/weir/api/v1alpha1"
	"github.com/weir-dev/weir/pkg/policy"
)

// An edit is a change of a policy that sidecars are waited for to enforce.
type edit struct {
	name       types.NamespacedName
	generation int64
	began      time.Time
	took       map[*sidecar]time.Duration
}

// applied notes that a sidecar enforces a set.
func (f *sidecars) applied(s *sidecar, set *policy.Set, now time.Time) {
	f.waits.Lock()
	defer f.waits.Unlock()
	e := f.edit
	if e == nil {
		return
	}
	for i := range set.Snapshot.Policies {
		p := &set.Snapshot.Policies[i]
		if _, known := e.took[s]; !known && p.Namespace == e.name.Namespace && p.Name == e.name.Name && p.Generation >= e.generation {
			e.took[s] = now.Sub(e.began)
		}
	}
}

// edited is how long an edit took.
type edited struct {
	delays     []time.Duration // until each sidecar enforced it
	programmed time.Duration   // until the status said that all do
}

// change edits a policy and waits until all sidecars enforce it and the status says so.
func (f *sidecars) change(ctx context.Context, name types.NamespacedName) (edited, error) {
	var p v1alpha1.RateLimitPolicy
	if err := f.world.kube.Get(ctx, name, &p); err != nil {
		return edited{}, err
	}
	before := p.DeepCopy()
	p.Spec.Limits[0].Rates[0].Limit++
	e := &edit{name: name, generation: p.Generation + 1, began: time.Now(), took: map[*sidecar]time.Duration{}}
	f.waits.Lock()
	f.edit = e
	f.waits.Unlock()
	if err := f.world.kube.Patch(ctx, &p, client.MergeFrom(before)); err != nil {
		return edited{}, err
	}
	var programmed time.Time
	err := await(ctx, converge, "that all sidecars enforce the edit and the status says so", func() bool {
		f.waits.Lock()
		n := len(e.took)
		f.waits.Unlock()
		if seen := f.world.watch.of(name); seen.generation == e.generation {
			programmed = seen.programmed
		}
		return n == len(f.all) && !programmed.IsZero()
	})
	f.waits.Lock()
	defer f.waits.Unlock()
	f.edit = nil
	if err != nil {
		return edited{}, fmt.Errorf("%d of %d do: %w", len(e.took), len(f.all), err)
	}
	out := edited{programmed: programmed.Sub(e.began)}
	for _, d := range e.took {
		out.delays = append(out.delays, d)
	}
	if last := quantile(out.delays, 1); programmed.Sub(e.began) < last-clockSlack {
		return out, fmt.Errorf("the status said Programmed %s after the edit, but the last sidecar enforced it after %s", out.programmed, last)
	}
	return out, nil
}

// clockSlack is more than passes between an instant and its being noted on a busy machine.
const clockSlack = 250 * time.Millisecond

// changes edits a policy some times and returns the one in the middle.
func (f *sidecars) changes(ctx context.Context, name types.NamespacedName) (middle edited, err error) {
	var all []edited
	for range 3 {
		e, err := f.change(ctx, name)
		if err != nil {
			return e, err
		}
		all = append(all, e)
		sleep(ctx, 2*time.Second)
	}
	worst := []time.Duration{}
	for _, e := range all {
		worst = append(worst, quantile(e.delays, .99))
	}
	for _, e := range all {
		if quantile(e.delays, .99) == quantile(worst, .5) {
			middle = e
		}
	}
	return middle, nil
}
