package webhook

import (
	"context"

	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/webhook"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/weir-dev/weir/api/v1alpha1"
	"github.com/weir-dev/weir/internal/controlplane/resolve"
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
// as a member of budgets, and ids are those that budgets may have.
func Register(server webhook.Server, scheme *runtime.Scheme, pods *PodInjector, cache client.Reader, cluster string, ids resolve.IDs) {
	budget := newBudget()
	server.Register(InjectPath, &endpoint{
		hook: &admission.Webhook{Handler: counted{pods}}, object: podShape, budget: budget,
		refuse: func(err error) admission.Handler { return counted{pods.refuse(err)} },
	})
	validate := func(path string, hook *admission.Webhook, object *shape) {
		server.Register(path, &endpoint{hook: hook, object: object, budget: budget, refuse: func(err error) admission.Handler {
			return admission.HandlerFunc(func(context.Context, admission.Request) admission.Response { return admission.Denied(err.Error()) })
		}})
	}
	validate(ValidatePolicyPath, admission.WithValidator(scheme, PolicyValidator{Cluster: cluster, IDs: ids, Cache: cache}), shapeOf[v1alpha1.RateLimitPolicy]())
	validate(ValidatePoolPath, admission.WithValidator(scheme, PoolValidator{Pools: cache}), shapeOf[v1alpha1.ConcurrencyPool]())
	validate(ValidateBudgetPath, admission.WithValidator(scheme, BudgetValidator{Cluster: cluster, IDs: ids, Cache: cache}), shapeOf[v1alpha1.FederatedBudget]())
}
