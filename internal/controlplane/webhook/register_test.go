package webhook

import (
	"net/http"
	"testing"

	admissionv1 "k8s.io/api/admission/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/webhook"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/weir-dev/weir/api/v1alpha1"
	"github.com/weir-dev/weir/internal/controlplane/resolve"
)

// hooks are what a server is to answer with, by path.
type hooks struct {
	webhook.Server
	by map[string]http.Handler
}

func (h hooks) Register(path string, hook http.Handler) { h.by[path] = hook }

// TestValidatorsKnowWhichClusterThisIs, and which ids budgets may have: what the budget of another cluster would be warned
// about is as it should be here.
func TestValidatorsKnowWhichClusterThisIs(t *testing.T) {
	b := changed(aBudget("b", monday), func(b *v1alpha1.FederatedBudget) { b.Spec.ID, b.Spec.Members = "acme/checkout", b.Spec.Members[1:] })
	ids, err := resolve.ParseIDs([]string{"shop=acme/checkout"})
	if err != nil {
		t.Fatal(err)
	}
	server := hooks{by: map[string]http.Handler{}}
	Register(server, ourScheme(t), nil, fake.NewClientBuilder().WithScheme(ourScheme(t)).WithObjects(b.DeepCopy()).Build(), "us-east", ids)
	for path, tc := range map[string]struct {
		kind   string
		object client.Object
	}{
		ValidatePolicyPath: {"RateLimitPolicy", drawing("b", nil)},
		ValidateBudgetPath: {"FederatedBudget", b},
	} {
		tc.object.GetObjectKind().SetGroupVersionKind(v1alpha1.GroupVersion.WithKind(tc.kind))
		served, is := server.by[path].(*endpoint)
		if !is {
			t.Fatalf("%s is answered by a %T", path, server.by[path])
		}
		response := served.hook.Handle(t.Context(), admission.Request{AdmissionRequest: admissionv1.AdmissionRequest{
			Operation: admissionv1.Create, Object: runtime.RawExtension{Raw: encode(t, tc.object)},
		}})
		if !response.Allowed || len(response.Warnings) > 0 {
			t.Errorf("%s: allowed %t, warnings %q; want none", path, response.Allowed, response.Warnings)
		}
	}
}
