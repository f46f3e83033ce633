package translate

import (
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/weir-dev/weir/api/v1alpha1"
	"github.com/weir-dev/weir/pkg/limiter"
	"github.com/weir-dev/weir/pkg/policy"
)

// Restarts returns what a restart of a store does to counters that are to outlive it; ""
// when that is not known.
type Restarts func(policy.Store) v1alpha1.StoreRestart

const (
	lossless = "set appendonly yes and appendfsync always on a single server without replicas"
	resuming = "or spec.store.onMemoryLoss to Resume, which may admit one more limit for each loss"
)

// RestartDoubts warns of the limit of p that waits longest when its Redis restarts and
// loses counters. It is not one of the doubts of Validate, as the controller knows and its
// status says: this is for the author of the policy, who may not have chosen that. Validate
// finds nothing wrong with p.
func RestartDoubts(p *v1alpha1.RateLimitPolicy, known Restarts) []string {
	of := Wanted(p)
	if of.Type != policy.RedisStore {
		return nil
	}
	limit, window := longestWait(p)
	if limit == "" {
		return nil
	}
	at := field.NewPath("spec", "store", "redis")
	then := fmt.Sprintf("limit %s admits nothing until its open window of %s ends", limit, window)
	if of.Cluster {
		return []string{warn(at.Child("cluster"), "when a node restarts or fails over counters may be lost, and %s: name a single server in address, %s, %s", then, lossless, resuming)}
	}
	if of.REST {
		return []string{warn(at.Child("rest"), "when the service fails over counters may be lost, and then %s: name a single server in address, %s, %s", then, lossless, resuming)}
	}
	switch known(of) {
	case v1alpha1.LosslessRestart:
		return nil
	case v1alpha1.LossyRestart:
		return []string{warn(at, "as this Redis is configured a restart may lose counters, and then %s: %s, %s; status.guarantee says what is missing", then, lossless, resuming)}
	}
	return []string{warn(at, "it is not known yet whether a restart of this Redis loses counters; if so, %s: %s, %s; status.store.restart says which it is", then, lossless, resuming)}
}

// longestWait returns the limit that waits longest when its store loses its counters, and
// the window that it waits for; "" when none does that they were to outlive.
func longestWait(p *v1alpha1.RateLimitPolicy) (limit, window string) {
	translated, _, _ := translate(p, nil)
	var most limiter.Micros
	for i := range translated.Limits {
		l, spec := &translated.Limits[i], &p.Spec.Limits[i]
		if !l.Retention.Durable || l.Retention.Resume {
			continue
		}
		named := slices.Clip(spec.Rates)
		for _, o := range spec.Overrides {
			named = append(named, o.Rates...)
		}
		for j, r := range everyRate(l) {
			if r.Window > most {
				most, limit, window = r.Window, l.Name, windowOf(named[j])
			}
		}
	}
	return limit, window
}
