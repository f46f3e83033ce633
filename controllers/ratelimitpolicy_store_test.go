package controllers_test

import (
	"errors"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/weir-dev/weir/api/v1alpha1"
	"github.com/weir-dev/weir/internal/coordinator"
	"github.com/weir-dev/weir/internal/translate"
)

// told is what the fleet says when each pod enforces the policy as it is now.
func (w *world) told(pods ...string) coordinator.Observation {
	w.Helper()
	enforced, err := translate.Policy(w.get())
	w.Expect(err).NotTo(HaveOccurred())
	o := acknowledged(enforced.Generation, pods...)
	for i := range o.Sessions {
		o.Sessions[i].Enforced = &enforced
	}
	return o
}

func (w *world) phase() v1alpha1.StorePhase {
	if s := w.get().Status.Store; s != nil {
		return s.Phase
	}
	return ""
}

func (w *world) editStore(to v1alpha1.Store) {
	w.Helper()
	p := w.get()
	before := p.DeepCopy()
	p.Spec.Store = to
	w.Expect(server.Patch(w.Context(), p, client.MergeFrom(before))).To(Succeed())
}

var (
	inController = v1alpha1.Store{Type: v1alpha1.ControllerStore}
	inRedis      = v1alpha1.Store{Type: v1alpha1.RedisStoreType, Redis: &v1alpha1.RedisStore{Address: "redis.shop.svc:6379", TLS: v1alpha1.TLSDisabled}}
)

func TestAMoveToAnotherStoreWaitsForEverySidecar(t *testing.T) {
	w := newWorld(t)
	a, b := w.enforcer("a"), w.enforcer("b")
	fleet.say(w.policy, w.told(a, b))
	w.Eventually(w.phase).Should(Equal(v1alpha1.StoreServing))
	w.Expect(w.get().Status.Store.ServesFrom).To(BeNil(), "the first store serves all that it remembers")

	w.editStore(inRedis)
	w.Eventually(w.phase).Should(Equal(v1alpha1.StoreWaiting), "nobody has acknowledged the edit")
	w.Expect(w.get().Status.Store.Active).To(Equal(inController))

	fleet.say(w.policy, w.told(a))
	w.Consistently(w.phase).Should(Equal(v1alpha1.StoreWaiting))
	w.Expect(w.get().Status.Store.Message).To(ContainSubstring("b ("))

	fleet.say(w.policy, w.told(a, b))
	w.Eventually(w.phase).Should(Equal(v1alpha1.StoreDraining))

	o := w.told(a, b)
	stale := *o.Sessions[1].Enforced
	stale.Draining = false
	o.Sessions[1].Enforced = &stale // b did not let go yet
	fleet.say(w.policy, o)
	w.Consistently(w.phase).Should(Equal(v1alpha1.StoreDraining))

	fleet.say(w.policy, w.told(a, b))
	w.Eventually(w.phase).Should(Equal(v1alpha1.StoreServing))
	status := w.get().Status.Store
	w.Expect(status.Active).To(Equal(inRedis))
	w.Expect(status.ServesFrom.Time).To(BeTemporally("==", clock.Now().Add(time.Minute)), "the clock of the new store")
}

func TestAMoveIsNotBegunWhileTheNewStoreIsAway(t *testing.T) {
	w := newWorld(t)
	a := w.enforcer("a")
	fleet.say(w.policy, w.told(a))
	w.Eventually(w.phase).Should(Equal(v1alpha1.StoreServing))
	stores.fail(errors.New("connection refused"))
	defer stores.fail(nil)
	w.editStore(inRedis)
	fleet.say(w.policy, w.told(a))
	w.Eventually(w.phase).Should(Equal(v1alpha1.StoreWaiting))
	w.Eventually(func() string { return w.get().Status.Store.Message }).Should(ContainSubstring("connection refused"))
	w.Expect(w.get().Status.Store.Active).To(Equal(inController))
}

func TestAnInvalidEditForgetsNoStore(t *testing.T) {
	w := newWorld(t)
	w.Eventually(w.phase).Should(Equal(v1alpha1.StoreServing))
	p := w.get()
	p.Spec.Limits[0].Match = []v1alpha1.Match{{Paths: []v1alpha1.PathMatch{{Type: v1alpha1.PathRegularExpression, Value: "("}}}}
	w.Expect(server.Patch(t.Context(), p, client.MergeFrom(w.get()))).To(Succeed())
	w.eventually(v1alpha1.AcceptedCondition, v1alpha1.InvalidReason)
	w.Expect(w.phase()).To(Equal(v1alpha1.StoreServing))
}
