package versions

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/webhook/conversion"

	"github.com/weir-dev/weir/api/v1alpha1"
)

// Values that the other version has no field for are kept in these annotations.
const (
	ofV1alpha1 = "conversion.weir.dev/v1alpha1" // of an object of v1beta1
	ofV1beta1  = "conversion.weir.dev/v1beta1"  // of an object of v1alpha1
)

// described is what v1alpha1 has no field for.
type described struct {
	Description string `json:"description,omitempty"`
}

// keep returns the annotations with what is lost.
func keep(annotations map[string]string, key string, lost any) (map[string]string, error) {
	data, err := json.Marshal(lost)
	if err != nil || string(data) == "{}" {
		return annotations, err
	}
	all := maps.Clone(annotations)
	if all == nil {
		all = map[string]string{}
	}
	all[key] = string(data)
	return all, nil
}

// restore returns the annotations without what is kept there, which it reads.
func restore(annotations map[string]string, key string, lost any) (map[string]string, error) {
	data, ok := annotations[key]
	if !ok {
		return annotations, nil
	}
	if err := json.Unmarshal([]byte(data), lost); err != nil {
		return nil, fmt.Errorf("annotation %s: %w", key, err)
	}
	all := maps.Clone(annotations)
	if delete(all, key); len(all) == 0 {
		all = nil
	}
	return all, nil
}

// exchange takes over the annotations of an object: what was kept for this version is restored, and
// what it has no field for is kept.
func exchange(annotations map[string]string, kept string, restored any, key string, lost any) (map[string]string, error) {
	rest, err := restore(annotations, kept, restored)
	if err != nil {
		return nil, err
	}
	return keep(rest, key, lost)
}

type lostOfPolicy struct {
	AnyOf []v1alpha1.Alternatives `json:"anyOf,omitempty"`
}

func policyToBeta(_ context.Context, in *v1alpha1.RateLimitPolicy, out *RateLimitPolicy) (err error) {
	s := &in.Spec
	var from described
	out.ObjectMeta = *in.ObjectMeta.DeepCopy()
	out.Annotations, err = exchange(in.Annotations, ofV1beta1, &from, ofV1alpha1, lostOfPolicy{s.AnyOf})
	out.Spec = PolicySpec{
		Selector: s.PodSelector, Enforcement: Enforcement{Mode: s.Mode, OnStoreUnavailable: s.OnStoreUnavailable}, Description: from.Description,
		ClientIP: s.ClientIP, JWTProviders: s.JWTProviders, Limits: s.Limits, Consistency: s.Consistency, Store: s.Store, Response: s.Response,
	}
	out.Status = in.Status
	return err
}

func policyToAlpha(_ context.Context, in *RateLimitPolicy, out *v1alpha1.RateLimitPolicy) (err error) {
	s := &in.Spec
	var from lostOfPolicy
	out.ObjectMeta = *in.ObjectMeta.DeepCopy()
	out.Annotations, err = exchange(in.Annotations, ofV1alpha1, &from, ofV1beta1, described{s.Description})
	out.Spec = v1alpha1.RateLimitPolicySpec{
		PodSelector: s.Selector, Mode: s.Enforcement.Mode, OnStoreUnavailable: s.Enforcement.OnStoreUnavailable, AnyOf: from.AnyOf,
		ClientIP: s.ClientIP, JWTProviders: s.JWTProviders, Limits: s.Limits, Consistency: s.Consistency, Store: s.Store, Response: s.Response,
	}
	out.Status = in.Status
	return err
}

type lostOfPool struct {
	Queue *v1alpha1.Queue `json:"queue,omitempty"`
}

func poolToBeta(_ context.Context, in *v1alpha1.ConcurrencyPool, out *ConcurrencyPool) (err error) {
	s := &in.Spec
	var from described
	out.ObjectMeta = *in.ObjectMeta.DeepCopy()
	out.Annotations, err = exchange(in.Annotations, ofV1beta1, &from, ofV1alpha1, lostOfPool{s.Queue})
	out.Spec = PoolSpec{
		Selector: s.PodSelector, Lease: Lease{Heartbeat: s.Heartbeat, SelfFence: s.SelfFence}, Description: from.Description,
		Match: s.Match, Mode: s.Mode, Limit: s.Limit, Algorithm: s.Algorithm, Aggregate: s.Aggregate, Allocation: s.Allocation, Handoff: s.Handoff,
		OnCoordinatorOutage: s.OnCoordinatorOutage, Coordinator: s.Coordinator, Exempt: s.Exempt, Key: s.Key, Partitions: s.Partitions, Response: s.Response,
	}
	out.Status = in.Status
	return err
}

func poolToAlpha(_ context.Context, in *ConcurrencyPool, out *v1alpha1.ConcurrencyPool) (err error) {
	s := &in.Spec
	var from lostOfPool
	out.ObjectMeta = *in.ObjectMeta.DeepCopy()
	out.Annotations, err = exchange(in.Annotations, ofV1alpha1, &from, ofV1beta1, described{s.Description})
	out.Spec = v1alpha1.ConcurrencyPoolSpec{
		PodSelector: s.Selector, Heartbeat: s.Lease.Heartbeat, SelfFence: s.Lease.SelfFence, Queue: from.Queue,
		Match: s.Match, Mode: s.Mode, Limit: s.Limit, Algorithm: s.Algorithm, Aggregate: s.Aggregate, Allocation: s.Allocation, Handoff: s.Handoff,
		OnCoordinatorOutage: s.OnCoordinatorOutage, Coordinator: s.Coordinator, Exempt: s.Exempt, Key: s.Key, Partitions: s.Partitions, Response: s.Response,
	}
	out.Status = in.Status
	return err
}

type lostOfBudget struct {
	Batch v1alpha1.BudgetBatch `json:"batch,omitzero"`
}

func budgetToBeta(_ context.Context, in *v1alpha1.FederatedBudget, out *FederatedBudget) (err error) {
	s := &in.Spec
	var from described
	out.ObjectMeta = *in.ObjectMeta.DeepCopy()
	out.Annotations, err = exchange(in.Annotations, ofV1beta1, &from, ofV1alpha1, lostOfBudget{s.Batch})
	out.Spec = BudgetSpec{
		BudgetID: s.ID, Link: Link{Hub: s.Hub, Coordinator: s.Coordinator}, Description: from.Description,
		Rate: s.Rate, AdditionalRates: s.AdditionalRates, Key: s.Key, Members: s.Members, Allocation: s.Allocation, Escrow: s.Escrow, OnCoordinatorOutage: s.OnCoordinatorOutage,
	}
	out.Status = in.Status
	return err
}

func budgetToAlpha(_ context.Context, in *FederatedBudget, out *v1alpha1.FederatedBudget) (err error) {
	s := &in.Spec
	var from lostOfBudget
	out.ObjectMeta = *in.ObjectMeta.DeepCopy()
	out.Annotations, err = exchange(in.Annotations, ofV1alpha1, &from, ofV1beta1, described{s.Description})
	out.Spec = v1alpha1.FederatedBudgetSpec{
		ID: s.BudgetID, Hub: s.Link.Hub, Coordinator: s.Link.Coordinator, Batch: from.Batch,
		Rate: s.Rate, AdditionalRates: s.AdditionalRates, Key: s.Key, Members: s.Members, Allocation: s.Allocation, Escrow: s.Escrow, OnCoordinatorOutage: s.OnCoordinatorOutage,
	}
	out.Status = in.Status
	return err
}

// newWebhook returns the conversion webhook of controller-runtime for the kinds.
func newWebhook(scheme *runtime.Scheme) (http.Handler, error) {
	registry := conversion.NewRegistry()
	for kind, converter := range map[string]func(*runtime.Scheme) (conversion.Converter, error){
		"RateLimitPolicy": conversion.NewHubSpokeConverter(&v1alpha1.RateLimitPolicy{}, conversion.NewSpokeConverter(&RateLimitPolicy{}, policyToBeta, policyToAlpha)),
		"ConcurrencyPool": conversion.NewHubSpokeConverter(&v1alpha1.ConcurrencyPool{}, conversion.NewSpokeConverter(&ConcurrencyPool{}, poolToBeta, poolToAlpha)),
		"FederatedBudget": conversion.NewHubSpokeConverter(&v1alpha1.FederatedBudget{}, conversion.NewSpokeConverter(&FederatedBudget{}, budgetToBeta, budgetToAlpha)),
	} {
		made, err := converter(scheme)
		if err != nil {
			return nil, err
		}
		if err := registry.RegisterConverter(schema.GroupKind{Group: v1beta1.Group, Kind: kind}, made); err != nil {
			return nil, err
		}
	}
	return conversion.NewWebhookHandler(scheme, registry), nil
}
