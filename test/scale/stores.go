package main

import (
	"context"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/weir-dev/weir/api/v1alpha1"
	"github.com/weir-dev/weir/internal/testing/devcluster/servers"
)

const (
	// lessees is how many sidecars lease, and leasesOfEach how many times a second each of them.
	lessees      = 200
	leasesOfEach = 50
)

// measureStores measures what sidecars cost the leader while each of their decisions takes a
// lease: of its own store, and of a Redis, where the leader distributes, collects and audits.
func measureStores(ctx context.Context, w *world) (section, error) {
	s := section{head: []string{"store", "decisions/s", "of them by the leader", "CPU of the leader", "of a sidecar, a second", "RSS"}}
	redis, err := servers.Redis(ctx, w.dir)
	if err != nil {
		return s, err
	}
	defer redis.Crash()
	f, err := newSidecars(ctx, w)
	if err != nil {
		return s, err
	}
	defer f.close()
	empty, err := w.atRest(ctx)
	if err != nil {
		return s, err
	}
	s.row("nobody leases", "", "", percent(empty.share), "", mib(empty.rss))
	own, elsewhere := strictPolicy("own"), strictPolicy("elsewhere")
	elsewhere.Spec.Store.Type = v1alpha1.RedisStoreType
	elsewhere.Spec.Store.Redis = &v1alpha1.RedisStore{Address: v1alpha1.HostPort(redis.Address)}
	var costs []time.Duration
	for _, p := range []*v1alpha1.RateLimitPolicy{own, elsewhere} {
		if err := w.kube.Create(ctx, p); err != nil {
			return s, err
		}
		each, err := f.lease(ctx, &s, p, empty)
		if err != nil {
			return s, fmt.Errorf("%s: %w", p.Name, err)
		}
		costs = append(costs, each)
		if err := w.kube.Delete(ctx, p); err != nil {
			return s, err
		}
	}
	s.last = []goal{{
		fmt.Sprintf("the leader's CPU for a sidecar that leases %d times a second: of a Redis, by that of its own store", leasesOfEach),
		"≤ 0.1", fmt.Sprintf("%.2f", costs[1].Seconds()/costs[0].Seconds()),
	}}
	return s, nil
}

func strictPolicy(name string) *v1alpha1.RateLimitPolicy {
	p := policyFor(types.NamespacedName{Namespace: shopSpace, Name: name}, shopApp, 1_000_000_000)
	p.Spec.Consistency.Mode = v1alpha1.StrictMode
	return p
}

// lease adds a row for sidecars that lease by a policy, and returns the CPU time that one of them
// takes of the leader in a second.
func (f *sidecars) lease(ctx context.Context, s *section, p *v1alpha1.RateLimitPolicy, empty idle) (time.Duration, error) {
	w := f.world
	if len(f.all) == 0 {
		if _, err := f.grow(ctx, lessees); err != nil {
			return 0, err
		}
	}
	err := await(ctx, time.Minute, "that all sidecars enforce the policy", func() bool {
		for _, one := range f.all {
			if set, _ := one.enforcer.Set(); len(set.Snapshot.Policies) != 1 || set.Snapshot.Policies[0].Name != p.Name {
				return false
			}
		}
		return true
	})
	if err != nil {
		return 0, err
	}
	sleep(ctx, 2*windowLength*time.Second) // windows that began before the store served it have ended
	l := f.startLoad(ctx, p.Name, p.Spec.Limits[0].Rates[0].Limit, leasesOfEach)
	defer l.stop()
	sleep(ctx, 5*time.Second)
	leases, err := w.leases(ctx)
	if err != nil {
		return 0, err
	}
	admitted, began := l.admitted(), time.Now()
	r, err := w.atRest(ctx) // but for leases
	if err != nil {
		return 0, err
	}
	after, err := w.leases(ctx)
	if err != nil {
		return 0, err
	}
	took := time.Since(began).Seconds()
	decided, byLeader := float64(l.admitted()-admitted)/took, (after-leases)/took
	each := time.Duration((r.share - empty.share) / float64(len(f.all)) * float64(time.Second))
	s.row(string(p.Spec.Store.Type), count(int(decided)), count(int(byLeader)), percent(r.share), each.Round(time.Microsecond).String(), mib(r.rss))
	if want := float64(len(f.all) * leasesOfEach); decided < want*.95 {
		return 0, fmt.Errorf("%.0f decisions a second were admitted of %.0f that were asked for", decided, want)
	}
	return each, nil
}
