package translate

import (
	"net"
	"net/url"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/weir-dev/weir/api/v1alpha1"
	"github.com/weir-dev/weir/pkg/limiter"
	"github.com/weir-dev/weir/pkg/policy"
)

// Serving returns what sidecars are sent of the store: the one that serves, since
// when on its own clock, and whether they have to let go of it. That is not always
// what spec.store names, which a change follows with care. A policy that was edited
// before its first status was written may have served from another store, so
// nothing is asked until it is known that nobody does.
func Serving(p *v1alpha1.RateLimitPolicy) (of policy.Store, since limiter.Instant, draining bool) {
	status := p.Status.Store
	if status == nil {
		return Wanted(p), 0, p.Generation > 1
	}
	if status.ServesFrom != nil {
		since = limiter.Instant(status.ServesFrom.UnixMicro())
	}
	return through(store(p.Namespace, status.Active), Access(p)), since, status.Phase == v1alpha1.StoreDraining
}

// Access returns how sidecars reach the store that serves. While that is not the one that
// spec.store names, they reach it as they did: credentials that were kept from them are not
// sent because another store is wanted.
func Access(p *v1alpha1.RateLimitPolicy) v1alpha1.StoreAccess {
	if status := p.Status.Store; status != nil && !equality.Semantic.DeepEqual(status.Active, p.Spec.Store.Store) {
		return status.Access
	}
	return p.Spec.Store.Access
}

// through returns a store that is reached that way. The controller's own is reached in one
// way only.
func through(of policy.Store, access v1alpha1.StoreAccess) policy.Store {
	of.Gateway = access == v1alpha1.GatewayAccess && of.Type != policy.ControllerStore
	return of
}

// Wanted returns the store that spec.store names.
func Wanted(p *v1alpha1.RateLimitPolicy) policy.Store {
	return through(store(p.Namespace, p.Spec.Store.Store), p.Spec.Store.Access)
}

// retention returns how the store keeps the counters of a limit. A budget keeps the counters
// of what it grants.
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

// leave handles a store that counted for a policy before limits of it drew from a budget,
// which only the controller knows. Nothing is asked of the store any more, so that its
// counters can be let go of.
func (t *translator) leave(path *field.Path, p *v1alpha1.RateLimitPolicy, out *policy.Policy) {
	if p.Spec.Store.Type != v1alpha1.ControllerStore {
		t.invalid(path, p.Spec.Store.Type, "a limit of scope Federated is leased by the controller: set it to Controller, or move that limit to a policy of its own")
	}
	out.Draining = out.Draining || out.Store.Type != policy.ControllerStore
}

// store returns the store of an object in that namespace.
func store(namespace string, s v1alpha1.Store) policy.Store {
	out := policy.Store{Type: policy.StoreType(s.Type)}
	var addresses []v1alpha1.HostPort
	switch {
	case s.Redis != nil && s.Redis.REST != nil:
		out.REST, out.TLS = true, strings.HasPrefix(s.Redis.REST.URL, "https:")
		out.Address, out.Secret = completeURL(namespace, s.Redis.REST.URL), secret(namespace, s.Redis.SecretRef)
		return out
	case s.Redis != nil:
		addresses, out.Cluster, out.Sentinel = redisServers(s.Redis)
		out.TLS, out.Secret = s.Redis.TLS == v1alpha1.TLSEnabled, secret(namespace, s.Redis.SecretRef)
	case s.Postgres != nil:
		addresses, out.Database = []v1alpha1.HostPort{s.Postgres.Address}, s.Postgres.Database
		out.TLS, out.Secret = s.Postgres.TLS == v1alpha1.TLSEnabled, secret(namespace, s.Postgres.SecretRef)
	}
	out.Address = complete(namespace, addresses)
	return out
}

func redisServers(r *v1alpha1.RedisStore) (addresses []v1alpha1.HostPort, cluster bool, sentinel string) {
	switch {
	case r.Sentinel != nil:
		return r.Sentinel.Addresses, false, r.Sentinel.Primary
	case r.Cluster != nil:
		return r.Cluster.Addresses, true, ""
	default:
		return []v1alpha1.HostPort{r.Address}, false, ""
	}
}

// complete joins addresses so that they mean one server in every namespace. A host
// without a dot is a Service in that namespace: a pod elsewhere, such as the controller,
// would look it up in its own.
func complete(namespace string, addresses []v1alpha1.HostPort) string {
	all := make([]string, len(addresses))
	for i, a := range addresses {
		all[i] = string(a)
		if host, port, err := net.SplitHostPort(all[i]); err == nil {
			all[i] = net.JoinHostPort(completeHost(namespace, host), port)
		}
	}
	return strings.Join(all, ",")
}

// completeURL does the same for the host of a URL.
func completeURL(namespace, text string) string {
	u, err := url.Parse(text)
	if err != nil {
		return text // the schema lets none pass
	}
	if host := u.Hostname(); completeHost(namespace, host) != host {
		u.Host = completeHost(namespace, host) + strings.TrimPrefix(u.Host, host)
	}
	return u.String()
}

func completeHost(namespace, host string) string {
	if host == "" || host == "localhost" || strings.ContainsAny(host, ".:") {
		return host
	}
	return host + "." + namespace + ".svc"
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
