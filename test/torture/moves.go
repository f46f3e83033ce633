package main

import (
	"cmp"
	"context"
	"slices"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/weir-dev/weir/api/v1alpha1"
)

// A seat is a store that keeps the counters of a shop until the next one does.
type seat struct {
	store *store
	// The store took over between two looks at the status, and serves windows that
	// began at an instant of its own clock or later. All are zero for the first one.
	looked, seen, from time.Time
}

// alone is how long a sidecar that restarts may ask the store that its pod was created
// with: until it hears of a controller.
const alone = 20 * time.Second

// moves reports whether the policy may be moved to another store: what its windows may
// admit then is the limit, whatever happens.
func (t terms) moves() bool {
	return !t.drawn && t.window == window && t.action == v1alpha1.DenyAction && t.onLoss == v1alpha1.WaitOnMemoryLoss
}

// move names another store in the policy.
func (s *shop) move(ctx context.Context, kube client.Client, to *store) error {
	_, err := s.change(ctx, kube, func(spec *v1alpha1.RateLimitPolicySpec) { spec.Store.Store = to.api })
	return err
}

// sits notes which store keeps the counters, as the status says at an instant. looked is
// when the look before began.
func (s *shop) sits(status *v1alpha1.StoreStatus, looked, seen time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	last := s.seats[len(s.seats)-1]
	if status == nil || place(status.Active) == place(last.store.api) {
		return
	}
	i := slices.IndexFunc(s.stores, func(other *store) bool { return place(other.api) == place(status.Active) })
	if i < 0 || status.ServesFrom == nil {
		return
	}
	s.seats = append(s.seats, seat{store: s.stores[i], looked: looked, seen: seen, from: status.ServesFrom.Time})
}

// place returns where a store is reached.
func place(of v1alpha1.Store) string {
	switch {
	case of.Redis != nil && of.Redis.Sentinel != nil:
		return of.Redis.Sentinel.Primary
	case of.Redis != nil && of.Redis.Cluster != nil:
		return string(of.Redis.Cluster.Addresses[0])
	case of.Redis != nil:
		return string(of.Redis.Address)
	case of.Postgres != nil:
		return string(of.Postgres.Address)
	default:
		return string(cmp.Or(of.Type, v1alpha1.ControllerStore))
	}
}

// began returns when the store's clock showed the instant from which it serves: the first
// and the last time. A clock that was set back may show it later than it is noted.
func (at seat) began(eras []era) (first, last time.Time) {
	first, last = at.looked, at.seen
	found := false
	for _, e := range eras {
		t := at.from.Add(e.from.Sub(e.shows(e.from)))
		if t.Before(e.from.Add(-slack)) || t.After(e.until.Add(slack)) || t.After(at.seen) {
			continue
		}
		if !found {
			first, last, found = t, t, true
			continue
		}
		if t.Before(first) {
			first = t
		}
		last = later(last, t)
	}
	return first, last
}

// eras returns how the clocks ran of the stores that kept the counters, each while it did.
// Every pod lets go of a store before the clock of the next one is read, and that one
// serves what begins then (docs/guarantees.md).
func (s *shop) eras() []era {
	s.mu.Lock()
	seats, starts := slices.Clone(s.seats), slices.Clone(s.starts)
	s.mu.Unlock()
	var all []era
	var left time.Time // when the first store was left
	for i, at := range seats {
		var from, until time.Time
		var first int64
		if i > 0 {
			from, _ = at.began(at.store.eras())
			first = (at.from.UnixMicro() + s.window.Microseconds() - 1) / s.window.Microseconds()
		}
		if i+1 < len(seats) {
			_, until = seats[i+1].began(seats[i+1].store.eras())
		}
		if i == 0 {
			left = until
		}
		all = append(all, at.store.within(from, until, first)...)
	}
	// A sidecar that restarts asks the store that its pod was created with until it
	// hears of the one that is named now, unless that takes credentials.
	for _, at := range starts {
		if origin := seats[0].store; !left.IsZero() && at.After(left) && origin.isRedis {
			all = append(all, origin.within(at, at.Add(alone), 0)...)
		}
	}
	return all
}

// within returns the eras of a store in a span of time, in which it serves no window
// before the first. A time that is zero does not bound it.
func (s *store) within(from, until time.Time, first int64) (all []era) {
	for _, e := range s.eras() {
		e.store, e.first, e.drained = s.number, first, until
		if e.until.Before(from) || !until.IsZero() && e.from.After(until) {
			continue
		}
		e.from = later(e.from, from)
		if !until.IsZero() && until.Before(e.until) {
			e.until = until
		}
		all = append(all, e)
	}
	return all
}
