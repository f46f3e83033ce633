package versions

import (
	"encoding/json"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/weir-dev/weir/api/v1alpha1"
)

var v1beta1 = schema.GroupVersion{Group: v1alpha1.GroupVersion.Group, Version: "v1beta1"}

// A RateLimitPolicy of v1beta1.
type RateLimitPolicy struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitzero"`

	Spec   PolicySpec                     `json:"spec"`
	Status v1alpha1.RateLimitPolicyStatus `json:"status,omitzero"`
}

// A PolicySpec has no anyOf.
type PolicySpec struct {
	Selector     metav1.LabelSelector    `json:"selector"` // podSelector
	Enforcement  Enforcement             `json:"enforcement,omitzero"`
	Description  string                  `json:"description,omitempty"` // v1alpha1 has none
	ClientIP     *v1alpha1.ClientIP      `json:"clientIP,omitempty"`
	JWTProviders []v1alpha1.JWTProvider  `json:"jwtProviders,omitempty"`
	Limits       []v1alpha1.Limit        `json:"limits"`
	Consistency  v1alpha1.Consistency    `json:"consistency,omitzero"`
	Store        v1alpha1.PolicyStore    `json:"store,omitzero"`
	Response     v1alpha1.PolicyResponse `json:"response,omitzero"`
}

// An Enforcement has fields of the spec.
type Enforcement struct {
	Mode               v1alpha1.PolicyMode         `json:"mode,omitempty"`
	OnStoreUnavailable v1alpha1.OnStoreUnavailable `json:"onStoreUnavailable,omitzero"`
}

// A ConcurrencyPool of v1beta1.
type ConcurrencyPool struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitzero"`

	Spec   PoolSpec                       `json:"spec"`
	Status v1alpha1.ConcurrencyPoolStatus `json:"status,omitzero"`
}

// A PoolSpec has no queue.
type PoolSpec struct {
	Selector            metav1.LabelSelector         `json:"selector"` // podSelector
	Lease               Lease                        `json:"lease,omitzero"`
	Description         string                       `json:"description,omitempty"` // v1alpha1 has none
	Match               []v1alpha1.Match             `json:"match,omitempty"`
	Mode                v1alpha1.PolicyMode          `json:"mode,omitempty"`
	Limit               v1alpha1.PoolLimit           `json:"limit"`
	Algorithm           v1alpha1.PoolAlgorithm       `json:"algorithm,omitzero"`
	Aggregate           v1alpha1.Aggregate           `json:"aggregate,omitempty"`
	Allocation          v1alpha1.Allocation          `json:"allocation,omitempty"`
	Handoff             v1alpha1.Handoff             `json:"handoff,omitempty"`
	OnCoordinatorOutage v1alpha1.OnCoordinatorOutage `json:"onCoordinatorOutage,omitzero"`
	Coordinator         v1alpha1.Store               `json:"coordinator,omitzero"`
	Exempt              []v1alpha1.Match             `json:"exempt,omitempty"`
	Key                 *v1alpha1.PoolKey            `json:"key,omitempty"`
	Partitions          []v1alpha1.Partition         `json:"partitions,omitempty"`
	Response            v1alpha1.PoolResponse        `json:"response,omitzero"`
}

// A Lease has fields of the spec.
type Lease struct {
	Heartbeat v1alpha1.Heartbeat `json:"heartbeat,omitzero"`
	SelfFence v1alpha1.SelfFence `json:"selfFence,omitzero"`
}

// A FederatedBudget of v1beta1.
type FederatedBudget struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitzero"`

	Spec   BudgetSpec                     `json:"spec"`
	Status v1alpha1.FederatedBudgetStatus `json:"status,omitzero"`
}

// A BudgetSpec has no batch.
type BudgetSpec struct {
	BudgetID            string                    `json:"budgetID"` // id
	Link                Link                      `json:"link,omitzero"`
	Description         string                    `json:"description,omitempty"` // v1alpha1 has none
	Rate                v1alpha1.BudgetRate       `json:"rate"`
	AdditionalRates     []v1alpha1.BudgetRate     `json:"additionalRates,omitempty"`
	Key                 *v1alpha1.BudgetKey       `json:"key,omitempty"`
	Members             []v1alpha1.BudgetMember   `json:"members"`
	Allocation          v1alpha1.BudgetAllocation `json:"allocation,omitempty"`
	Escrow              v1alpha1.BudgetEscrow     `json:"escrow,omitzero"`
	OnCoordinatorOutage v1alpha1.OnBudgetOutage   `json:"onCoordinatorOutage,omitzero"`
}

// A Link has fields of the spec.
type Link struct {
	Hub         *v1alpha1.BudgetHub        `json:"hub,omitempty"`
	Coordinator v1alpha1.BudgetCoordinator `json:"coordinator,omitzero"`
}

// DeepCopyObject implements runtime.Object.
func (p *RateLimitPolicy) DeepCopyObject() runtime.Object { return copied(p) }

// DeepCopyObject implements runtime.Object.
func (p *ConcurrencyPool) DeepCopyObject() runtime.Object { return copied(p) }

// DeepCopyObject implements runtime.Object.
func (b *FederatedBudget) DeepCopyObject() runtime.Object { return copied(b) }

func copied[T any](in *T) *T {
	data, err := json.Marshal(in)
	if err != nil {
		panic(err)
	}
	out := new(T)
	if err := json.Unmarshal(data, out); err != nil {
		panic(err)
	}
	return out
}

// newScheme knows both versions.
func newScheme() (*runtime.Scheme, error) {
	scheme := runtime.NewScheme()
	scheme.AddKnownTypes(v1beta1, &RateLimitPolicy{}, &ConcurrencyPool{}, &FederatedBudget{})
	return scheme, v1alpha1.AddToScheme(scheme)
}
