package webhook

import (
	"bytes"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus/testutil"
	admissionv1 "k8s.io/api/admission/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/yaml"

	"github.com/weir-dev/weir/api/v1alpha1"
	"github.com/weir-dev/weir/internal/controlplane/resolve"
	"github.com/weir-dev/weir/internal/controlplane/webhook/webhooktest"
)

// serve registers the endpoints and returns them, and a function that has one answer a POST.
func serve(t *testing.T, pods *PodInjector) (at func(path string) *endpoint, post func(path, body string) *httptest.ResponseRecorder) {
	t.Helper()
	served := hooks{by: map[string]http.Handler{}}
	Register(served, ourScheme(t), pods, fake.NewClientBuilder().WithScheme(ourScheme(t)).Build(), "us-east", resolve.IDs{})
	return func(path string) *endpoint { return served.by[path].(*endpoint) }, func(path, body string) *httptest.ResponseRecorder {
		r := httptest.NewRequest(http.MethodPost, path, strings.NewReader(body))
		r.Header.Set("Content-Type", "application/json")
		w := httptest.NewRecorder()
		served.by[path].ServeHTTP(w, r)
		return w
	}
}

func decoded(t *testing.T, w *httptest.ResponseRecorder) *admissionv1.AdmissionResponse {
	t.Helper()
	var review admissionv1.AdmissionReview
	if err := json.Unmarshal(w.Body.Bytes(), &review); err != nil || review.Response == nil || review.Kind != "AdmissionReview" || review.Response.UID != "a-uid" {
		t.Fatalf("%d %.500s: %v; want the answer to the review", w.Code, w.Body, err)
	}
	return review.Response
}

const aReview = webhooktest.Spec + `"containers":[` + webhooktest.App + webhooktest.Last

func TestAReviewIsAnswered(t *testing.T) {
	pods, _ := newInjector()
	_, post := serve(t, pods)
	r := decoded(t, post(InjectPath, aReview))
	if !r.Allowed || r.PatchType == nil || *r.PatchType != admissionv1.PatchTypeJSONPatch || !bytes.Contains(r.Patch, []byte("weir-sidecar")) {
		t.Errorf("response %+v, want a patch with the sidecar", r)
	}
}

// TestReviewsBeyondTheBudgetAreAnsweredAtOnce, and are answered once others have ended.
func TestReviewsBeyondTheBudgetAreAnsweredAtOnce(t *testing.T) {
	pods, _ := newInjector()
	at, post := serve(t, pods)
	budget := at(InjectPath).budget
	for _, path := range []string{ValidatePolicyPath, ValidatePoolPath, ValidateBudgetPath} {
		if at(path).budget != budget {
			t.Errorf("%s has a budget of its own", path)
		}
	}
	for _, left := range []int64{0, 100 << 10} { // no room for the body, none for the work
		if !budget.TryAcquire(reviewMemory - left) {
			t.Fatal("a review has kept what it took")
		}
		before := testutil.ToFloat64(refusedReviews.WithLabelValues("503"))
		w := post(InjectPath, aReview)
		if w.Code != http.StatusServiceUnavailable || w.Header().Get("Retry-After") != "1" {
			t.Errorf("with %d bytes left: %d, retry after %q; want 503 and 1", left, w.Code, w.Header().Get("Retry-After"))
		}
		if n := testutil.ToFloat64(refusedReviews.WithLabelValues("503")) - before; n != 1 {
			t.Errorf("with %d bytes left: counted %v times", left, n)
		}
		budget.Release(reviewMemory - left)
	}
	if r := decoded(t, post(InjectPath, aReview)); !r.Allowed {
		t.Errorf("with room again: %+v", r)
	}
}

// TestTheBudgetFits the container that the chart makes, and two of the largest reviews.
func TestTheBudgetFits(t *testing.T) {
	data, err := os.ReadFile("../../../charts/weir/values.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var values struct {
		Controller struct {
			Resources struct{ Limits struct{ Memory string } }
		}
	}
	if err := yaml.Unmarshal(data, &values); err != nil {
		t.Fatal(err)
	}
	limit := resource.MustParse(values.Controller.Resources.Limits.Memory)
	if limit.Value() < 4*reviewMemory {
		t.Errorf("the container has %d bytes, and reviews take %d: want a quarter at most", limit.Value(), reviewMemory)
	}
	if largest := cost(maxReview, maxAboutMemory+maxObjectMemory); 2*largest > reviewMemory {
		t.Errorf("a review takes up to %d bytes, want two in %d", largest, reviewMemory)
	}
}

func TestReviewsThatCannotBeRead(t *testing.T) {
	pods, _ := newInjector()
	at, post := serve(t, pods)
	for body, want := range map[string]int{
		"": 400, "{": 400, "kind: AdmissionReview": 400, strings.Replace(aReview, "/v1", "/v1beta1", 1): 400,
		strings.Repeat(" ", maxReview): 400, strings.Repeat(" ", maxReview+1): 413,
	} {
		if w := post(InjectPath, body); w.Code != want {
			t.Errorf("%.40q: %d %s, want %d", body, w.Code, w.Body, want)
		}
	}
	w := httptest.NewRecorder()
	r := httptest.NewRequest(http.MethodPost, InjectPath, strings.NewReader(aReview))
	r.Header.Set("Content-Type", "application/yaml")
	if at(InjectPath).ServeHTTP(w, r); w.Code != http.StatusUnsupportedMediaType {
		t.Errorf("YAML: %d %s", w.Code, w.Body)
	}
}

// TestAPodBeyondABoundIsRefusedWhereItOptedIn: it would start unlimited. Elsewhere it is
// nothing to us.
func TestAPodBeyondABoundIsRefusedWhereItOptedIn(t *testing.T) {
	const costly = `"spec":{"overhead":{"cpu":"1e-9999999"}}}` + webhooktest.Tail
	many := string(webhooktest.Text{Start: webhooktest.Spec + `"containers":[{"ports":[`, Part1: `{"containerPort":2#},`, N1: 10_000, End: `{}]}` + webhooktest.Last}.Bytes())
	for name, tc := range map[string]struct {
		body   string
		labels map[string]string
		want   bool
	}{
		"a namespace that opted in":             {webhooktest.Head + `"object":{` + costly, enabled, false},
		"another":                               {webhooktest.Head + `"object":{` + costly, nil, true},
		"a pod that opted in":                   {webhooktest.Metadata + `"annotations":{"weir.dev/inject":"enabled"}},` + costly, nil, false},
		"a pod that opted out":                  {webhooktest.Metadata + `"annotations":{"weir.dev/inject":"disabled"}},` + costly, enabled, true},
		"a namespace that opted out":            {webhooktest.Metadata + `"annotations":{"weir.dev/inject":"enabled"}},` + costly, map[string]string{v1alpha1.InjectionLabel: v1alpha1.Disabled}, true},
		"many ports, a namespace that opted in": {many, enabled, false},
		"many ports, another":                   {many, nil, true},
	} {
		pods, events := newInjector()
		pods.Namespaces, pods.LiveNamespaces = withNamespace(tc.labels), withNamespace(tc.labels)
		_, post := serve(t, pods)
		r := decoded(t, post(InjectPath, tc.body))
		if r.Allowed != tc.want || len(r.Patch) > 0 || !tc.want && r.Result.Code != http.StatusForbidden {
			t.Errorf("%s: allowed %t (%v), want %t", name, r.Allowed, r.Result, tc.want)
		}
		if !tc.want && len(events.lines) > 0 {
			t.Errorf("%s: Events %q of a pod that is not created", name, events.lines)
		}
	}
}

func TestAnObjectBeyondABoundIsRefused(t *testing.T) {
	pods, _ := newInjector()
	_, post := serve(t, pods)
	body := webhooktest.Text{Start: webhooktest.Metadata + `"labels":{`, Part1: `"#":"",`, N1: 200_000, End: `"a":""}}}` + webhooktest.Tail}.Bytes()
	for _, path := range []string{ValidatePolicyPath, ValidatePoolPath, ValidateBudgetPath} {
		if r := decoded(t, post(path, string(body))); r.Allowed || !strings.Contains(r.Result.Message, "metadata.labels") {
			t.Errorf("%s: %+v, want it refused because of its labels", path, r)
		}
	}
}
