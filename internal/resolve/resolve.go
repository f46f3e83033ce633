package resolve

import (
	"context"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/weir-dev/weir/api/v1alpha1"
	"github.com/weir-dev/weir/internal/translate"
	"github.com/weir-dev/weir/pkg/policy"
	"github.com/weir-dev/weir/pkg/store"
)

// syncTimeout bounds how long an admission waits for the cache of a replica that
// has just started.
const syncTimeout = time.Second

// ByLabels resolves what a pod with given labels would enforce. It is safe for
// concurrent use when its cache is.
type ByLabels struct {
	Cluster string        // that counters are named after, and this cluster as a member of budgets
	Cache   client.Reader // of policies, pools and budgets; it must not answer before it is synced
}

// Snapshot returns what pods of the namespace with these labels enforce. While
// the cache is not synced it blocks for at most a second. A *translate.PartialError comes
// with all that can be enforced, any other error with nothing.
func (r ByLabels) Snapshot(ctx context.Context, namespace string, labels map[string]string) (policy.Snapshot, error) {
	ctx, cancel := context.WithTimeout(ctx, syncTimeout)
	defer cancel()
	var policies v1alpha1.RateLimitPolicyList
	if err := r.Cache.List(ctx, &policies, client.InNamespace(namespace)); err != nil {
		return policy.Snapshot{}, fmt.Errorf("listing the policies of namespace %s: %w", namespace, err)
	}
	var pools v1alpha1.ConcurrencyPoolList
	if err := r.Cache.List(ctx, &pools, client.InNamespace(namespace)); err != nil {
		return policy.Snapshot{}, fmt.Errorf("listing the pools of namespace %s: %w", namespace, err)
	}
	var pool *v1alpha1.ConcurrencyPool
	if selecting := Pools(pools.Items, namespace, labels); len(selecting) > 0 {
		pool = selecting[0]
	}
	budgets, err := r.budgets(ctx, namespace, policies.Items)
	if err != nil {
		return policy.Snapshot{}, err
	}
	return translate.Snapshot(r.Cluster, policies.Items, budgets, pool, namespace, labels)
}

// Limits returns all limits of this cluster.
func (r ByLabels) Limits(ctx context.Context) (map[store.Scope]struct{}, error) {
	var policies v1alpha1.RateLimitPolicyList
	if err := r.Cache.List(ctx, &policies); err != nil {
		return nil, fmt.Errorf("listing all policies: %w", err)
	}
	out := map[store.Scope]struct{}{}
	for _, p := range policies.Items {
		for _, l := range p.Spec.Limits {
			out[store.Scope{Cluster: r.Cluster, Namespace: p.Namespace, Policy: p.Name, Limit: l.Name}] = struct{}{}
		}
	}
	return out, nil
}

// budgets returns what the policies of the namespace may draw from. Where none of them
// does the cache is not asked.
func (r ByLabels) budgets(ctx context.Context, namespace string, policies []v1alpha1.RateLimitPolicy) (translate.Budgets, error) {
	if !slices.ContainsFunc(policies, func(p v1alpha1.RateLimitPolicy) bool { return translate.Draws(&p) }) {
		return nil, nil
	}
	all, err := ReadBudgets(ctx, r.Cache, r.Cluster)
	if err != nil {
		return nil, err
	}
	return all.In(namespace), nil
}

// ByPod resolves what an existing pod enforces. It is safe for concurrent use
// when the cache is.
type ByPod struct {
	ByLabels // whose Cache holds pods too
	Secrets  *Secrets
}

// Secret returns the values of the credentials that the store names.
func (r ByPod) Secret(ctx context.Context, s policy.Store) (map[string][]byte, error) {
	data, _, err := r.Secrets.Data(ctx, s)
	return data, err
}

// Snapshot returns what the pod enforces, and which version its stores'
// credentials have, none when they cannot be read. It fails when the cache does not know
// the pod (yet), when the name belongs to a pod with another UID
// (*OtherPodError). When a policy that selects the pod, or the pool that applies to it,
// cannot be translated, or a budget that such a policy draws from does not count, it
// returns the rest and a *translate.PartialError.
func (r ByPod) Snapshot(ctx context.Context, namespace, pod, podUID string) (policy.Snapshot, error) {
	name := types.NamespacedName{Namespace: namespace, Name: pod}
	var p corev1.Pod
	if err := r.Cache.Get(ctx, name, &p); err != nil {
		return policy.Snapshot{}, fmt.Errorf("reading pod %s: %w", name, err)
	}
	if string(p.UID) != podUID {
		return policy.Snapshot{}, &OtherPodError{Pod: name, UID: string(p.UID), Want: podUID}
	}
	snapshot, err := r.ByLabels.Snapshot(ctx, namespace, p.Labels)
	for i := range snapshot.Policies {
		r.setVersion(ctx, &snapshot.Policies[i].Store)
	}
	if snapshot.Pool != nil {
		r.setVersion(ctx, &snapshot.Pool.Coordinator)
	}
	return snapshot, err
}

// setVersion sets which version the store's credentials have. Those that cannot be
// read make this store unavailable, as the status of what uses it says, and keep
// nothing else from the pod.
func (r ByPod) setVersion(ctx context.Context, of *policy.Store) {
	_, of.SecretVersion, _ = r.Secrets.Data(ctx, *of)
}

// OtherPodError says that a pod's name belongs to another pod now.
type OtherPodError struct {
	Pod       types.NamespacedName
	UID, Want string
}

// Error names the pod and both UIDs.
func (e *OtherPodError) Error() string {
	return fmt.Sprintf("pod %s has UID %s, not %s: the name was used again", e.Pod, e.UID, e.Want)
}
