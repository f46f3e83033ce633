package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// GroupVersion names the group and the version of the kinds in this package.
var GroupVersion = schema.GroupVersion{Group: "weir.dev", Version: "v1alpha1"}

var schemeBuilder = runtime.NewSchemeBuilder(addKnownTypes)

// AddToScheme registers the kinds of this package.
var AddToScheme = schemeBuilder.AddToScheme

func addKnownTypes(scheme *runtime.Scheme) error {
	scheme.AddKnownTypes(GroupVersion,
		&RateLimitPolicy{}, &RateLimitPolicyList{},
		&ConcurrencyPool{}, &ConcurrencyPoolList{},
		&FederatedBudget{}, &FederatedBudgetList{},
	)
	metav1.AddToGroupVersion(scheme, GroupVersion)
	return nil
}
