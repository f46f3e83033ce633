package webhook

import (
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/webhook"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"
)

// The paths that the webhook configurations in config/webhook name.
const (
	InjectPath         = "/inject-v1-pod"
	ValidatePolicyPath = "/validate-weir-dev-v1alpha1-ratelimitpolicy"
	ValidatePoolPath   = "/validate-weir-dev-v1alpha1-concurrencypool"
	ValidateBudgetPath = "/validate-weir-dev-v1alpha1-federatedbudget"
)

// Register has the server answer at the paths above. The scheme must know v1alpha1. The
// cache is of policies, pools and budgets and may be behind; cluster is this one's name
// as a member of budgets.
func Register(server webhook.Server, scheme *runtime.Scheme, pods *PodInjector, cache client.Reader, cluster string) {
	server.Register(InjectPath, &admission.Webhook{Handler: counted{pods}})
	server.Register(ValidatePolicyPath, admission.WithValidator(scheme, PolicyValidator{Cluster: cluster, Cache: cache}))
	server.Register(ValidatePoolPath, admission.WithValidator(scheme, PoolValidator{Pools: cache}))
	server.Register(ValidateBudgetPath, admission.WithValidator(scheme, BudgetValidator{Cluster: cluster, Cache: cache}))
}
