//go:build fleet

package fleet

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/weir-dev/weir/api/v1alpha1"
	"github.com/weir-dev/weir/internal/controlplane/inject"
)

var _ = Describe("Bad input", func() {
	It("in a pod's annotations never changes a pod that did not ask for it, and is reported", func(ctx SpecContext) {
		shop := openShop(ctx, nil)
		Expect(shop.dryPod(ctx, nil).Spec.InitContainers).To(ContainElement(HaveField("Name", inject.ContainerName)))

		out := shop.dryPod(ctx, map[string]string{v1alpha1.InjectKey: v1alpha1.Disabled})
		Expect(out.Spec.InitContainers).To(BeEmpty())
		Expect(out.Spec.Containers[0].Ports[0].Name).To(Equal("http"))
		Expect(out.Labels).NotTo(HaveKey("weir.dev/enforcer"))

		malformed := shop.dryPod(ctx, map[string]string{v1alpha1.InjectKey: "yes please"})
		Expect(malformed.Spec.InitContainers).To(BeEmpty())
		Eventually(func(g Gomega) {
			var events eventsv1.EventList
			g.Expect(kube.List(ctx, &events, client.InNamespace(shop.namespace))).To(Succeed())
			g.Expect(events.Items).To(ContainElement(And(
				HaveField("Type", corev1.EventTypeWarning),
				HaveField("Reason", "InjectionSkipped"),
				HaveField("Note", ContainSubstring(`is "yes please": use "enabled" or "disabled"`)),
			)))
		}, longest, 200*time.Millisecond).Should(Succeed())
	}, SpecTimeout(3*time.Minute))

	DescribeTable("in a policy is refused with the field and the cure",
		func(ctx SpecContext, edit func(*v1alpha1.RateLimitPolicySpec), field, cure string) {
			policy := policyIn("default")
			edit(&policy.Spec)
			err := kube.Create(ctx, policy, client.DryRunAll)
			Expect(apierrors.IsInvalid(err) || apierrors.IsForbidden(err)).To(BeTrue(), "%v", err)
			Expect(err).To(MatchError(And(ContainSubstring(field), ContainSubstring(cure))))
		},
		Entry("no limits", SpecTimeout(time.Minute), func(s *v1alpha1.RateLimitPolicySpec) { s.Limits = nil }, "spec.limits", ""),
		Entry("a limit of zero", SpecTimeout(time.Minute), func(s *v1alpha1.RateLimitPolicySpec) { s.Limits[0].Rates[0].Limit = 0 }, "limit", "greater than or equal to 1"),
		Entry("a window that is not a duration", SpecTimeout(time.Minute), func(s *v1alpha1.RateLimitPolicySpec) { s.Limits[0].Rates[0].Window = "soon" }, "window", ""),
		Entry("Redis without an address", SpecTimeout(time.Minute), func(s *v1alpha1.RateLimitPolicySpec) { s.Store.Type = v1alpha1.RedisStoreType }, "store", "set redis.address"),
		Entry("two limits of one name", SpecTimeout(time.Minute), func(s *v1alpha1.RateLimitPolicySpec) { s.Limits = append(s.Limits, s.Limits[0]) }, "spec.limits[1]", "Duplicate"),
	)

	It("in a check request is answered with the field and the cure", func(ctx SpecContext) {
		shop := openShop(ctx, nil)
		shop.deploy(ctx, "checkout", 1, nil)
		url := "http://" + shop.endpoints(ctx)[0].Check + "/v1/check"
		for body, want := range map[string]struct {
			status int
			detail string
		}{
			`not JSON`: {400, "not a JSON object"},
			`{"policy":"checkout","limit":"all","cost":0}`:       {400, "cost"},
			`{"policy":"checkout","limit":"all","cots":1}`:       {400, "cots"},
			`{"policy":"checkout"}`:                              {400, "limit"},
			`{"policy":"checkout","limit":"none"}`:               {404, "limit"},
			`{"policy":"checkout","limit":"all","policy":"two"}`: {400, "twice"},
		} {
			status, detail := post(ctx, url, body)
			Expect(status).To(Equal(want.status), "%s: %s", body, detail)
			Expect(detail).To(ContainSubstring(want.detail), body)
		}
	}, SpecTimeout(3*time.Minute))
})

// dryPod returns a pod of the application as the API server would store it.
func (s *shop) dryPod(ctx context.Context, annotations map[string]string) *corev1.Pod {
	GinkgoHelper()
	template := s.deployment("dry", 1, nil).Spec.Template
	pod := &corev1.Pod{ObjectMeta: template.ObjectMeta, Spec: template.Spec}
	pod.Namespace, pod.GenerateName, pod.Annotations = s.namespace, "dry-", annotations
	pod.Spec.NodeName = "nowhere" // it shall not run
	Expect(kube.Create(ctx, pod)).To(Succeed())
	return pod
}

func post(ctx context.Context, url, body string) (status int, answer string) {
	GinkgoHelper()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, url, bytes.NewBufferString(body))
	Expect(err).NotTo(HaveOccurred())
	req.Header.Set("Content-Type", "application/json")
	resp, err := http.DefaultClient.Do(req)
	Expect(err).NotTo(HaveOccurred())
	defer resp.Body.Close()
	raw, err := io.ReadAll(resp.Body)
	Expect(err).NotTo(HaveOccurred())
	return resp.StatusCode, string(raw)
}
