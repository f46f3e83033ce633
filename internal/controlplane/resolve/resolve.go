package resolve

import (
	"context"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/weir-dev/weir/api/v1alpha1"
	"github.com/weir-dev/weir/internal/controlplane/translate"
	"github.com/weir-dev/weir/pkg/policy"
	"github.com/weir-dev/weir/pkg/store"
)

// ByLabels resolves what a pod with given labels would enforce. It is safe for
// concurrent use when its cache is.
type ByLabels struct {
	Cluster string        // that counters are named after, and this cluster as a member of budgets
	IDs     IDs           // that budgets may have
	Cache   client.Reader // of policies, pools and budgets; it must not answer before it is synced
}

// Snapshot returns what pods of the namespace with these labels enforce. While
// the cache is not synced it blocks for at most a second. A *translate.PartialError comes
// with all that can be enforced, any other error with nothing.
func (r ByLabels) Snapshot(ctx context.Context, namespace string, podLabels map[string]string) (policy.Snapshot, error) {
	v, err := r.view(ctx, namespace)
	if err != nil {
		return policy.Snapshot{}, err
	}
	t, _ := v.of(podLabels)
	return t.snapshot, t.err
}

// Limits returns all limits of this cluster.
func (r ByLabels) Limits(ctx context.Context) (map[store.Scope]struct{}, error) {
	var policies v1alpha1.RateLimitPolicyList
	if err := r.Cache.List(ctx, &policies, client.UnsafeDisableDeepCopy); err != nil {
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
	all, err := ReadBudgets(ctx, r.Cache, r.Cluster, r.IDs)
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
	Keys     *Keys // of providers of tokens
}

// Secret returns the values of the credentials that the store names.
func (r ByPod) Secret(ctx context.Context, s policy.Store) (map[string][]byte, error) {
	data, _, err := r.Secrets.Data(ctx, s)
	return data, err
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
