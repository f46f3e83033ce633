package webhook

import (
	"net/http"
	"strings"
	"testing"

	admissionv1 "k8s.io/api/admission/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/weir-dev/weir/api/v1alpha1"
)

func aPolicy(window v1alpha1.Duration, path string) *v1alpha1.RateLimitPolicy {
	return &v1alpha1.RateLimitPolicy{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "checkout", Generation: 1},
		Spec: v1alpha1.RateLimitPolicySpec{
			PodSelector: metav1.LabelSelector{MatchLabels: map[string]string{"app": "checkout"}},
			Mode:        v1alpha1.EnforceMode,
			Consistency: v1alpha1.Consistency{Mode: v1alpha1.StrictMode},
			Store:       v1alpha1.PolicyStore{Store: v1alpha1.Store{Type: v1alpha1.ControllerStore}},
			OnStoreUnavailable: v1alpha1.OnStoreUnavailable{
				Action: v1alpha1.LocalShareAction,
			},
			Limits: []v1alpha1.Limit{{
				Name:  "all",
				Match: []v1alpha1.Match{{Paths: []v1alpha1.PathMatch{{Type: v1alpha1.PathRegularExpression, Value: path}}}},
				Rates: []v1alpha1.Rate{{Limit: 100, Window: window}},
			}},
		},
	}
}

// validate sends the policy through the webhook as the API server would.
func validate(t *testing.T, operation admissionv1.Operation, old, p *v1alpha1.RateLimitPolicy) admission.Response {
	t.Helper()
	req := admission.Request{AdmissionRequest: admissionv1.AdmissionRequest{Operation: operation}}
	for object, raw := range map[*v1alpha1.RateLimitPolicy]*runtime.RawExtension{old: &req.OldObject, p: &req.Object} {
		if object != nil {
			object.SetGroupVersionKind(v1alpha1.GroupVersion.WithKind("RateLimitPolicy"))
			raw.Raw = encode(t, object)
		}
	}
	return admission.WithValidator(ourScheme(t), PolicyValidator{}).Handle(t.Context(), req)
}

func ourScheme(t testing.TB) *runtime.Scheme {
	t.Helper()
	scheme := runtime.NewScheme()
	if err := v1alpha1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	return scheme
}

func TestPolicyValidator(t *testing.T) {
	good, long, bad := aPolicy("1s", "/a"), aPolicy("1h", "/a"), aPolicy("1s", "(")
	long.Spec.Store.Memory = v1alpha1.VolatileMemory
	labelled := bad.DeepCopy()
	labelled.Labels = map[string]string{"team": "a"}
	tests := map[string]struct {
		operation   admissionv1.Operation
		old, policy *v1alpha1.RateLimitPolicy
		wantField   string // of the only cause; empty: allowed
		wantWarning string
	}{
		"a good policy":                    {operation: admissionv1.Create, policy: good},
		"a long window that is forgotten":  {operation: admissionv1.Create, policy: long, wantWarning: "spec.store.memory"},
		"a bad policy":                     {operation: admissionv1.Create, policy: bad, wantField: "spec.limits[0].match[0].paths[0].value"},
		"a good policy that turns bad":     {operation: admissionv1.Update, old: good, policy: bad, wantField: "spec.limits[0].match[0].paths[0].value"},
		"a bad policy that gets a label":   {operation: admissionv1.Update, old: bad, policy: labelled},
		"a bad policy that is set right":   {operation: admissionv1.Update, old: bad, policy: good},
		"a bad policy that is deleted":     {operation: admissionv1.Delete, old: bad},
		"a long window that is kept as is": {operation: admissionv1.Update, old: long, policy: long.DeepCopy()},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			response := validate(t, tc.operation, tc.old, tc.policy)
			if warned := strings.Contains(strings.Join(response.Warnings, "\n"), tc.wantWarning); !warned || (tc.wantWarning == "") != (len(response.Warnings) == 0) {
				t.Errorf("warnings %q, want one with %q", response.Warnings, tc.wantWarning)
			}
			if tc.wantField == "" {
				if !response.Allowed {
					t.Errorf("refused: %v", response.Result)
				}
				return
			}
			requireCause(t, response, tc.wantField)
		})
	}
}

// requireCause checks the shape in which kubectl shows faults one by one.
func requireCause(t *testing.T, response admission.Response, field string) {
	t.Helper()
	if response.Allowed {
		t.Fatal("allowed")
	}
	result := response.Result
	if result.Code != http.StatusUnprocessableEntity || result.Reason != metav1.StatusReasonInvalid {
		t.Errorf("status %d %s, want 422 Invalid", result.Code, result.Reason)
	}
	if result.Details == nil || len(result.Details.Causes) != 1 || result.Details.Causes[0].Field != field {
		t.Errorf("details %+v, want one cause at %s", result.Details, field)
	}
}

// aDayIn returns a policy with a window of a day in that Redis, and what its status says of
// a restart once the store is reachable or not.
func aDayIn(name string, address v1alpha1.HostPort, restart v1alpha1.StoreRestart, reachable metav1.ConditionStatus) *v1alpha1.RateLimitPolicy {
	p := aPolicy("24h", "/a")
	p.Name = name
	p.Spec.Store.Store = v1alpha1.Store{Type: v1alpha1.RedisStoreType, Redis: &v1alpha1.RedisStore{Address: address}}
	if reachable != "" {
		p.Status.Store = &v1alpha1.StoreStatus{Active: *p.Spec.Store.Store.DeepCopy(), Phase: v1alpha1.StoreServing, Restart: restart}
		p.Status.Conditions = []metav1.Condition{
			{Type: v1alpha1.StoreReachableCondition, Status: reachable, Reason: v1alpha1.ReachableReason},
			{Type: v1alpha1.ProgrammedCondition, Status: metav1.ConditionTrue, Reason: v1alpha1.ProgrammedReason},
		}
	}
	return p
}

func TestALongWindowInRedis(t *testing.T) {
	const here, there = "redis.shop.svc:6379", "redis.cart.svc:6379"
	const lossless, lossy = v1alpha1.LosslessRestart, v1alpha1.LossyRestart
	const yes, no = metav1.ConditionTrue, metav1.ConditionFalse
	moving := aDayIn("a", there, lossless, yes)
	moving.Spec.Store.Redis.Address = here // which does not serve yet
	idle := aDayIn("a", here, lossy, yes)
	idle.Status.Conditions[1].Reason = v1alpha1.NoEnforcersReason // it may keep everything by now
	elsewhere := aDayIn("a", here, lossless, yes)
	elsewhere.Namespace = "cart"
	// In this namespace a name without a dot is that server, and in another it is not.
	const short = "redis:6379"
	stranger := aDayIn("a", short, lossless, yes)
	stranger.Namespace = "cart"
	const unknown, forgets = "it is not known yet", "as this Redis is configured a restart may lose counters"
	for name, tc := range map[string]struct {
		others []client.Object
		want   string // a part of the only warning; empty: none
	}{
		"nothing is known of it":                   {nil, unknown},
		"that keeps everything":                    {[]client.Object{aDayIn("a", here, lossless, yes)}, ""},
		"that keeps everything, seen elsewhere":    {[]client.Object{elsewhere}, ""},
		"that forgets":                             {[]client.Object{aDayIn("a", here, lossy, yes)}, forgets},
		"policies differ about it":                 {[]client.Object{aDayIn("a", here, lossless, yes), aDayIn("b", here, lossy, yes), aDayIn("c", here, lossless, yes)}, forgets},
		"that keeps everything, by its short name": {[]client.Object{aDayIn("a", short, lossless, yes)}, ""},
		"beside one with its short name elsewhere": {[]client.Object{stranger}, unknown},
		"beside another that keeps everything":     {[]client.Object{aDayIn("a", there, lossless, yes)}, unknown},
		"that kept everything and went away":       {[]client.Object{aDayIn("a", here, lossless, no)}, unknown},
		"that was not asked yet":                   {[]client.Object{aDayIn("a", here, "", yes)}, unknown},
		"that was asked when there were sidecars":  {[]client.Object{idle}, unknown},
		"that a policy only moves to":              {[]client.Object{moving}, unknown},
		"that an old status says nothing of":       {[]client.Object{aDayIn("a", here, "", ""), aDayIn("b", here, lossless, yes)}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			cache := fake.NewClientBuilder().WithScheme(ourScheme(t)).WithObjects(tc.others...).Build()
			p := aDayIn("checkout", here, "", "")
			warnings, err := PolicyValidator{Cache: cache}.ValidateCreate(t.Context(), p)
			if err != nil {
				t.Errorf("refused: %v", err)
			}
			requireWarning(t, admission.Allowed("").WithWarnings(warnings...), tc.want)
		})
	}
	t.Run("while statuses cannot be read", func(t *testing.T) {
		warnings, err := PolicyValidator{Cache: unreadable{}}.ValidateCreate(t.Context(), aDayIn("checkout", here, "", ""))
		if err != nil {
			t.Errorf("refused: %v", err)
		}
		requireWarning(t, admission.Allowed("").WithWarnings(warnings...), unknown)
	})
}

func TestMalformedPolicyRequest(t *testing.T) {
	scheme := ourScheme(t)
	for name, raw := range map[string]string{"an empty object": "", "what is not JSON": "{", "another type": `{"spec":[]}`} {
		t.Run(name, func(t *testing.T) {
			req := admission.Request{AdmissionRequest: admissionv1.AdmissionRequest{
				Operation: admissionv1.Create, Object: runtime.RawExtension{Raw: []byte(raw)},
			}}
			response := admission.WithValidator(scheme, PolicyValidator{}).Handle(t.Context(), req)
			if response.Allowed || response.Result.Code != http.StatusBadRequest {
				t.Errorf("answer %v, want 400", response.Result)
			}
		})
	}
}
