package webhook

import (
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/webhook"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"
)

// The paths that the webhook configurations in config/webhook name.
const (
	InjectPath         = "/inject-v1-pod"
	ValidatePolicyPath = "/validate-weir-dev-v1alpha1-ratelimitpolicy"
	ValidatePoolPath   = "/validate-weir-dev-v1alpha1-concurrencypool"
)

// Register has the server answer at the paths above. The scheme must know
// v1alpha1.
func Register(server webhook.Server, scheme *runtime.Scheme, pods *PodInjector, pools PoolValidator) {
	server.Register(InjectPath, &admission.Webhook{Handler: pods})
	server.Register(ValidatePolicyPath, admission.WithValidator(scheme, PolicyValidator{}))
	server.Register(ValidatePoolPath, admission.WithValidator(scheme, pools))
}
