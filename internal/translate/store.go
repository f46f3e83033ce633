package translate

import (
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/weir-dev/weir/api/v1alpha1"
	"github.com/weir-dev/weir/pkg/limiter"
	"github.com/weir-dev/weir/pkg/policy"
)

// Serving returns what sidecars are told of the store: the one that serves, since
// when on its own clock, and whether they have to let go of it. That is not always
// what spec.store names, which a change follows with care. A policy that was edited
// before its first status was written may have served from another store, so
// nothing is asked until it is known that nobody does.
func Serving(p *v1alpha1.RateLimitPolicy) (of policy.Store, since limiter.Instant, draining bool) {
	status := p.Status.Store
	if status == nil {
		return store(p.Namespace, p.Spec.Store.Store), 0, p.Generation > 1
	}
	if status.ServesFrom != nil {
		since = limiter.Instant(status.ServesFrom.UnixMicro())
	}
	return store(p.Namespace, status.Active), since, status.Phase == v1alpha1.StoreDraining
}

// Wanted returns the store that spec.store names.
func Wanted(p *v1alpha1.RateLimitPolicy) policy.Store {
	return store(p.Namespace, p.Spec.Store.Store)
}

// retention returns how the store keeps the counters of a limit. What a budget grants
// is kept by that.
func retention(s v1alpha1.PolicyStore, l *policy.Limit) limiter.Retention {
	var durable bool
	switch s.Memory {
	case v1alpha1.DurableMemory:
		durable = true
	case v1alpha1.VolatileMemory:
	default:
		durable = slices.ContainsFunc(everyRate(l), isLong)
	}
	if !durable || l.Budget != nil {
		return limiter.Retention{}
	}
	return limiter.Retention{Durable: true, Resume: s.OnMemoryLoss == v1alpha1.ResumeOnMemoryLoss}
}

// longWindow is the longest window that a restart of the store may take from users.
const longWindow = 60 * limiter.Second

func isLong(r limiter.Rate) bool { return r.Window > longWindow }

// leave says what becomes of a store that counted for a policy before limits of it
// drew from a budget, of which only the controller knows: nothing is asked of it any
// more, so that its counters can be let go of.
func (t *translator) leave(path *field.Path, p *v1alpha1.RateLimitPolicy, out *policy.Policy) {
	if p.Spec.Store.Type != v1alpha1.ControllerStore {
		t.invalid(path, p.Spec.Store.Type, "a limit of scope Federated is leased by the controller: set it to Controller, or move that limit to a policy of its own")
	}
	out.Draining = out.Draining || out.Store.Type != policy.ControllerStore
}

// store returns the store of a policy in that namespace.
func store(namespace string, s v1alpha1.Store) policy.Store {
	out := policy.Store{Type: policy.StoreType(s.Type)}
	switch {
	case s.Redis != nil:
		out.Address, out.Cluster, out.Sentinel = redisServers(s.Redis)
		out.TLS, out.Secret = s.Redis.TLS == v1alpha1.TLSEnabled, secret(namespace, s.Redis.SecretRef)
	case s.Postgres != nil:
		out.Address, out.Database = string(s.Postgres.Address), s.Postgres.Database
		out.TLS, out.Secret = s.Postgres.TLS == v1alpha1.TLSEnabled, secret(namespace, s.Postgres.SecretRef)
	}
	return out
}

func redisServers(r *v1alpha1.RedisStore) (addresses string, cluster bool, sentinel string) {
	switch {
	case r.Sentinel != nil:
		return join(r.Sentinel.Addresses), false, r.Sentinel.Primary
	case r.Cluster != nil:
		return join(r.Cluster.Addresses), true, ""
	default:
		return string(r.Address), false, ""
	}
}

func join(addresses []v1alpha1.HostPort) string {
	var all []string
	for _, a := range addresses {
		all = append(all, string(a))
	}
	return strings.Join(all, ",")
}

func secret(namespace string, ref *v1alpha1.SecretReference) string {
	if ref == nil {
		return ""
	}
	return namespace + "/" + ref.Name
}

// firstLease is what leases of a size that is learned begin with.
const firstLease = 100

// consistency returns how the store is used; path is that of the lease.
func (t *translator) consistency(path *field.Path, c v1alpha1.Consistency) policy.Consistency {
	out := policy.Consistency{Mode: policy.ConsistencyMode(c.Mode)}
	if c.Mode != v1alpha1.LeasedMode {
		return out
	}
	lease := c.Lease
	if lease == nil {
		lease = &v1alpha1.Lease{Size: v1alpha1.LeaseSize{Type: v1alpha1.AdaptiveSize}, Expiry: v1alpha1.CoupledExpiry}
	}
	out.Size, out.Expiry, out.LowWater = policy.SizeType(lease.Size.Type), policy.Expiry(lease.Expiry), lease.LowWater
	if lease.Size.Type == v1alpha1.FixedSize {
		out.Batch = or(lease.Size.Batch, 0)
	} else {
		out.Min, out.Max = or(lease.Size.Min, v1alpha1.DefaultMinLease), or(lease.Size.Max, v1alpha1.DefaultMaxLease)
		out.Batch = min(max(firstLease, out.Min), out.Max)
	}
	if lease.ReturnIdleAfter != "" {
		out.ReturnIdleAfter = t.micros(path.Child("returnIdleAfter"), string(lease.ReturnIdleAfter))
	}
	return out
}

// or returns what p points to, other when it is nil.
func or[T any](p *T, other T) T {
	if p == nil {
		return other
	}
	return *p
}
