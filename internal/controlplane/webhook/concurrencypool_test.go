package webhook

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	admissionv1 "k8s.io/api/admission/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/weir-dev/weir/api/v1alpha1"
)

var (
	monday, tuesday = time.Unix(1_800_000_000, 0), time.Unix(1_800_086_400, 0)
	checkout        = map[string]string{"app": "checkout"}
)

// aPool returns a pool of the pods labelled app=checkout. An empty expression is left
// out.
func aPool(name string, created time.Time, expression string) *v1alpha1.ConcurrencyPool {
	p := &v1alpha1.ConcurrencyPool{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, Generation: 1, CreationTimestamp: metav1.NewTime(created)},
		Spec: v1alpha1.ConcurrencyPoolSpec{
			PodSelector:         metav1.LabelSelector{MatchLabels: checkout},
			Mode:                v1alpha1.EnforceMode,
			Limit:               v1alpha1.PoolLimit{Max: 100},
			Algorithm:           v1alpha1.PoolAlgorithm{Type: v1alpha1.FixedAlgorithm},
			Aggregate:           v1alpha1.MedianAggregate,
			Allocation:          v1alpha1.EqualSplitAllocation,
			Handoff:             v1alpha1.AcknowledgedHandoff,
			Heartbeat:           v1alpha1.Heartbeat{Interval: "1s", LeaseTTL: "2s", Eager: v1alpha1.EagerEnabled},
			SelfFence:           v1alpha1.SelfFence{OnFenced: v1alpha1.DrainAction},
			OnCoordinatorOutage: v1alpha1.OnCoordinatorOutage{Action: v1alpha1.FailClosedAction},
			Coordinator:         v1alpha1.Store{Type: v1alpha1.ControllerStore},
			Response:            v1alpha1.PoolResponse{StatusCode: 503},
		},
	}
	if expression != "" {
		p.Spec.Exempt = []v1alpha1.Match{{Paths: []v1alpha1.PathMatch{{Type: v1alpha1.PathRegularExpression, Value: expression}}}}
	}
	return p
}

// selecting returns the pool with another selector.
func selecting(p *v1alpha1.ConcurrencyPool, labels map[string]string) *v1alpha1.ConcurrencyPool {
	p = p.DeepCopy()
	p.Spec.PodSelector.MatchLabels = labels
	return p
}

// validatePool sends the pool through the webhook as the API server would, while
// others exist.
func validatePool(t *testing.T, operation admissionv1.Operation, old, p *v1alpha1.ConcurrencyPool, others ...client.Object) admission.Response {
	t.Helper()
	req := admission.Request{AdmissionRequest: admissionv1.AdmissionRequest{Operation: operation}}
	for object, raw := range map[*v1alpha1.ConcurrencyPool]*runtime.RawExtension{old: &req.OldObject, p: &req.Object} {
		if object != nil {
			object.SetGroupVersionKind(v1alpha1.GroupVersion.WithKind("ConcurrencyPool"))
			raw.Raw = encode(t, object)
		}
	}
	validator := PoolValidator{Pools: fake.NewClientBuilder().WithScheme(ourScheme(t)).WithObjects(others...).Build()}
	return admission.WithValidator(ourScheme(t), validator).Handle(t.Context(), req)
}

// matching returns the pool about some requests.
func matching(p *v1alpha1.ConcurrencyPool) *v1alpha1.ConcurrencyPool {
	p = p.DeepCopy()
	p.Spec.Match = []v1alpha1.Match{{Methods: []v1alpha1.Method{"GET"}}}
	return p
}

func TestPoolValidator(t *testing.T) {
	good, bad, doubtful := aPool("p", tuesday, ""), aPool("p", tuesday, "("), aPool("p", tuesday, "")
	doubtful.Spec.Aggregate = v1alpha1.MinAggregate
	labelled := bad.DeepCopy()
	labelled.Labels = map[string]string{"team": "a"}
	fresh := aPool("p", time.Time{}, "")
	older, younger := aPool("older", monday, ""), aPool("younger", tuesday.Add(time.Hour), "")
	cart := map[string]string{"app": "cart"}
	tests := map[string]struct {
		operation   admissionv1.Operation
		old, pool   *v1alpha1.ConcurrencyPool
		other       *v1alpha1.ConcurrencyPool
		wantField   string // of the only cause; empty: allowed
		wantWarning string // a part of the only one; empty: none
	}{
		"a good pool":                     {operation: admissionv1.Create, pool: good},
		"a doubtful pool":                 {operation: admissionv1.Create, pool: doubtful, wantWarning: "spec.aggregate: with algorithm Fixed"},
		"a bad pool":                      {operation: admissionv1.Create, pool: bad, wantField: "spec.exempt[0].paths[0].value"},
		"a good pool that turns bad":      {operation: admissionv1.Update, old: good, pool: bad, wantField: "spec.exempt[0].paths[0].value"},
		"a bad pool that gets a label":    {operation: admissionv1.Update, old: bad, pool: labelled},
		"a bad pool that is set right":    {operation: admissionv1.Update, old: bad, pool: good},
		"a bad pool that is deleted":      {operation: admissionv1.Delete, old: bad},
		"one beside a pool of its pods":   {operation: admissionv1.Create, pool: fresh, other: older, wantWarning: "ConcurrencyPool older selects pods labelled app=checkout, too; it is older and applies to them, and this one does not"},
		"one beside a pool of all pods":   {operation: admissionv1.Create, pool: fresh, other: selecting(older, nil), wantWarning: "pods labelled app=checkout, too"},
		"two of all pods":                 {operation: admissionv1.Create, pool: selecting(fresh, nil), other: selecting(older, nil), wantWarning: "selects pods without labels, too"},
		"one beside a pool of others":     {operation: admissionv1.Create, pool: fresh, other: selecting(older, cart)},
		"one of some requests beside it":  {operation: admissionv1.Create, pool: matching(fresh), other: older},
		"one beside one of some requests": {operation: admissionv1.Create, pool: fresh, other: matching(older)},
		"one that moves to others' pods":  {operation: admissionv1.Update, old: selecting(good, cart), pool: good, other: younger, wantWarning: "ConcurrencyPool younger selects pods labelled app=checkout, too; this one is older and applies to them"},
		"a rivalry that is kept as is":    {operation: admissionv1.Update, old: good, pool: good.DeepCopy(), other: older},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			var others []client.Object
			if tc.other != nil {
				others = append(others, tc.other)
			}
			response := validatePool(t, tc.operation, tc.old, tc.pool, others...)
			if tc.wantField != "" {
				requireCause(t, response, tc.wantField)
				return
			}
			if !response.Allowed {
				t.Errorf("refused: %v", response.Result)
			}
			requireWarning(t, response, tc.wantWarning)
		})
	}
}

// requireWarning wants a single warning that says so, none when it is empty.
func requireWarning(t *testing.T, response admission.Response, want string) {
	t.Helper()
	switch got := response.Warnings; {
	case want == "" && len(got) == 0:
	case want == "" || len(got) != 1 || !strings.Contains(got[0], want):
		t.Errorf("warnings %q, want one that says %q", got, want)
	}
}

// unreadable is a cache that fails.
type unreadable struct{ client.Reader }

func (unreadable) List(context.Context, client.ObjectList, ...client.ListOption) error {
	return errors.New("the cache is not synced")
}

func TestARivalThatCannotBeReadHoldsNothingUp(t *testing.T) {
	warnings, err := PoolValidator{Pools: unreadable{}}.ValidateCreate(t.Context(), aPool("p", monday, ""))
	if err != nil || len(warnings) != 1 || !strings.Contains(warnings[0], "the cache is not synced") {
		t.Errorf("warnings %q, error %v; want one warning that says why", warnings, err)
	}
}
