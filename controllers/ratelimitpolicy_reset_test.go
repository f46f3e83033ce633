package controllers_test

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/weir-dev/weir/api/v1alpha1"
)

// resets returns what the stores were asked to set back for the policy.
func (w *world) resets() []string {
	fleet.mu.Lock()
	stores.mu.Lock()
	defer fleet.mu.Unlock()
	defer stores.mu.Unlock()
	all := append(slices.Clone(fleet.reset), stores.reset...)
	return slices.DeleteFunc(all, func(r string) bool { return !strings.Contains(r, "/"+w.policy.Namespace+"/"+w.policy.Name+"/") })
}

func (w *world) askReset(request string) {
	w.Helper()
	p := w.get()
	before := p.DeepCopy()
	p.Annotations = map[string]string{v1alpha1.ResetAnnotation: request}
	w.Expect(server.Patch(w.Context(), p, client.MergeFrom(before))).To(Succeed())
}

func (w *world) reset() v1alpha1.ResetStatus {
	if r := w.get().Status.Reset; r != nil {
		return *r
	}
	return v1alpha1.ResetStatus{}
}

func TestACounterIsSetBackOnce(t *testing.T) {
	w := newWorld(t)
	fleet.say(w.policy, w.acknowledged(w.enforcer("a")))
	w.Eventually(w.phase).Should(Equal(v1alpha1.StoreServing))
	limit := w.get().Spec.Limits[0].Name

	refreshes := fleet.refreshes(w.policy.Namespace)
	w.askReset(limit + "@1")
	w.Eventually(w.reset).Should(HaveField("Phase", v1alpha1.ResetDone))
	w.Expect(w.resets()).To(HaveLen(1))
	w.Expect(w.resets()[0]).To(Equal(strings.Join([]string{cluster, w.policy.Namespace, w.policy.Name, limit}, "/") + " <nil>"))
	w.Expect(w.reset().Message).To(Equal("limit " + limit + " is set back"))
	w.Expect(w.reset().At.Time).To(BeTemporally("==", time.UnixMicro(1_800_000_000_000_000)), "the store's time of it, which pods and the audit hear")
	w.Eventually(func() int { return fleet.refreshes(w.policy.Namespace) }).Should(BeNumerically(">", refreshes), "pods hear of it")

	fleet.say(w.policy, w.acknowledged("a"))
	w.Consistently(w.resets).Should(HaveLen(1), "the same request again")
	w.askReset(limit + "@2")
	w.Eventually(w.resets).Should(HaveLen(2))

	w.askReset("nobody@3")
	w.Eventually(w.reset).Should(And(HaveField("Phase", v1alpha1.ResetFailed), HaveField("Message", ContainSubstring(`there is no limit "nobody"`))))
	w.Expect(w.reset().At).NotTo(BeNil(), "the one before may still count")
	w.Expect(w.reset().Time.Time).To(BeTemporally("==", clock.Now()))
	w.Expect(w.resets()).To(HaveLen(2))
}

func TestAResetThatMayHaveHappenedIsNotRepeated(t *testing.T) {
	w := newWorld(t, func(p *v1alpha1.RateLimitPolicy) { p.Spec.Store.Store = inRedis })
	fleet.say(w.policy, w.acknowledged(w.enforcer("a")))
	w.Eventually(w.phase).Should(Equal(v1alpha1.StoreServing))
	stores.fail(errors.New("no answer"))
	defer stores.fail(nil)
	w.askReset(w.get().Spec.Limits[0].Name + "@1")
	w.Eventually(w.reset).Should(And(HaveField("Phase", v1alpha1.ResetFailed), HaveField("Message", ContainSubstring("it is not known whether")), HaveField("At", Not(BeNil()))))
	w.Expect(w.resets()).To(HaveLen(1))
	w.Expect(w.resets()[0]).To(HavePrefix("redis.shop.svc:6379 "))
	fleet.say(w.policy, w.acknowledged("a"))
	w.Consistently(w.resets).Should(HaveLen(1))
}

// TestAResetThatAnotherBeganIsNotRepeated: that one may have asked the store before it
// crashed.
func TestAResetThatAnotherBeganIsNotRepeated(t *testing.T) {
	w := newWorld(t)
	fleet.say(w.policy, w.acknowledged(w.enforcer("a")))
	w.Eventually(w.phase).Should(Equal(v1alpha1.StoreServing))
	request := w.get().Spec.Limits[0].Name + "@1"
	w.Eventually(func() error {
		p := w.get()
		p.Status.Reset = &v1alpha1.ResetStatus{Request: request, Phase: v1alpha1.ResetStarted, Time: new(metav1.Now())}
		return server.Status().Update(w.Context(), p)
	}).Should(Succeed())
	w.askReset(request)
	w.Consistently(w.resets).Should(BeEmpty())
	w.Expect(w.reset().Phase).To(Equal(v1alpha1.ResetStarted))
}
