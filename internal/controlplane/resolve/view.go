package resolve

import (
	"context"
	"encoding/binary"
	"fmt"
	"maps"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/weir-dev/weir/api/v1alpha1"
	"github.com/weir-dev/weir/internal/controlplane/translate"
	"github.com/weir-dev/weir/pkg/policy"
)

// syncTimeout bounds how long an admission waits for the cache of a replica that
// has just started.
const syncTimeout = time.Second

// A view is what the cache holds for one namespace at one instant. Label sets that the
// same policies and the same pools select share a translation, however many pods have
// them. It is not safe for concurrent use, and changes no object: they are the cache's.
type view struct {
	cluster, namespace string
	policies           []v1alpha1.RateLimitPolicy
	selectors          []labels.Selector // of the policies; nil: cannot be read, so it may select
	pools              []v1alpha1.ConcurrencyPool
	budgets            translate.Budgets
	looked             []string                // labels that a selector of a policy or a pool looks at
	translations       map[string]*translation // by what selects
	byLabels           map[string]*translation // by the values of the labels that are looked at
}

type translation struct {
	snapshot policy.Snapshot
	err      error
}

// view reads what pods of the namespace may enforce. While the cache is not synced it
// blocks for at most a second.
func (r ByLabels) view(ctx context.Context, namespace string) (*view, error) {
	ctx, cancel := context.WithTimeout(ctx, syncTimeout)
	defer cancel()
	var policies v1alpha1.RateLimitPolicyList
	if err := r.Cache.List(ctx, &policies, client.InNamespace(namespace), client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("listing the policies of namespace %s: %w", namespace, err)
	}
	var pools v1alpha1.ConcurrencyPoolList
	if err := r.Cache.List(ctx, &pools, client.InNamespace(namespace), client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("listing the pools of namespace %s: %w", namespace, err)
	}
	budgets, err := r.budgets(ctx, namespace, policies.Items)
	if err != nil {
		return nil, err
	}
	v := &view{
		cluster: r.Cluster, namespace: namespace, policies: policies.Items, pools: pools.Items, budgets: budgets,
		selectors:    make([]labels.Selector, len(policies.Items)),
		translations: map[string]*translation{},
		byLabels:     map[string]*translation{},
	}
	v.look()
	for i := range v.policies {
		if selector, err := metav1.LabelSelectorAsSelector(&v.policies[i].Spec.PodSelector); err == nil {
			v.selectors[i] = selector
		}
	}
	return v, nil
}

// look finds the labels that the selectors look at. No other label of a pod matters.
func (v *view) look() {
	looked := map[string]struct{}{}
	add := func(s *metav1.LabelSelector) {
		for label := range s.MatchLabels {
			looked[label] = struct{}{}
		}
		for i := range s.MatchExpressions {
			looked[s.MatchExpressions[i].Key] = struct{}{}
		}
	}
	for i := range v.policies {
		add(&v.policies[i].Spec.PodSelector)
	}
	for i := range v.pools {
		add(&v.pools[i].Spec.PodSelector)
	}
	v.looked = slices.Collect(maps.Keys(looked))
}

// of returns what pods with these labels enforce, and whether it was translated just now. The selectors
// are asked once for each combination of the values that they look at.
func (v *view) of(podLabels map[string]string) (t *translation, first bool) {
	var values []byte
	for _, label := range v.looked {
		if value, found := podLabels[label]; found {
			values = append(values, value...)
		} else {
			values = append(values, '-') // which no value is
		}
		values = append(values, 0) // which is in no value
	}
	if known, ok := v.byLabels[string(values)]; ok {
		return known, false
	}
	t, first = v.selected(podLabels)
	v.byLabels[string(values)] = t
	return t, first
}

// selected is of, by asking each selector.
func (v *view) selected(podLabels map[string]string) (t *translation, first bool) {
	pools := Applying(Pools(v.pools, v.namespace, podLabels))
	var key []byte
	for _, pool := range pools {
		key = append(append(key, pool.Name...), '/') // which no name has
	}
	key = append(key, '/')
	var policies []v1alpha1.RateLimitPolicy
	for i, selector := range v.selectors {
		if selector == nil || selector.Matches(labels.Set(podLabels)) {
			policies = append(policies, v.policies[i])
			key = binary.AppendUvarint(key, uint64(i))
		}
	}
	if known, ok := v.translations[string(key)]; ok {
		return known, false
	}
	t = &translation{}
	t.snapshot, t.err = translate.Snapshot(v.cluster, policies, v.budgets, pools, v.namespace, podLabels)
	v.translations[string(key)] = t
	return t, true
}

// Namespace reads what the pods of a namespace may enforce, and returns a function that
// resolves one of them. The function returns what the pod enforces, which version its
// stores' credentials have, none when they cannot be read, and so the keys of tokens. Pods that the same policies and
// pool select share the snapshot. The function is for one goroutine, and for as long as what
// was read is current enough. It fails when the cache does not know the pod (yet), and when
// the name belongs to a pod with another UID (*OtherPodError). When a policy that selects
// the pod, or a pool that applies to it, cannot be translated, or a budget that such a
// policy draws from does not count, it returns the rest and a *translate.PartialError.
func (r ByPod) Namespace(ctx context.Context, namespace string) (func(ctx context.Context, pod, podUID string) (*policy.Snapshot, error), error) {
	v, err := r.view(ctx, namespace)
	if err != nil {
		return nil, err
	}
	return func(ctx context.Context, pod, podUID string) (*policy.Snapshot, error) {
		podLabels, err := r.labels(ctx, types.NamespacedName{Namespace: namespace, Name: pod}, podUID)
		if err != nil {
			return nil, err
		}
		t, first := v.of(podLabels)
		if first {
			r.setVersions(ctx, &t.snapshot)
			r.Keys.setKeys(ctx, &t.snapshot)
		}
		return &t.snapshot, t.err
	}, nil
}

func (r ByPod) labels(ctx context.Context, name types.NamespacedName, podUID string) (map[string]string, error) {
	var p corev1.Pod
	if err := r.Cache.Get(ctx, name, &p, client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("reading pod %s: %w", name, err)
	}
	if string(p.UID) != podUID {
		return nil, &OtherPodError{Pod: name, UID: string(p.UID), Want: podUID}
	}
	return p.Labels, nil
}

// setVersions sets which versions the stores' credentials have. Those that cannot be
// read make this store unavailable, as the status of what uses it says, and keep
// nothing else from the pod.
func (r ByPod) setVersions(ctx context.Context, s *policy.Snapshot) {
	for i := range s.Policies {
		_, s.Policies[i].Store.SecretVersion, _ = r.Secrets.Data(ctx, s.Policies[i].Store)
	}
	if s.Pool != nil {
		_, s.Pool.Coordinator.SecretVersion, _ = r.Secrets.Data(ctx, s.Pool.Coordinator)
	}
	for i := range s.Pools {
		of := &s.Pools[i].Coordinator
		_, of.SecretVersion, _ = r.Secrets.Data(ctx, *of)
	}
}
