package controllers_test

import (
	"errors"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/weir-dev/weir/api/v1alpha1"
	"github.com/weir-dev/weir/internal/controlplane/coordinator"
	"github.com/weir-dev/weir/internal/controlplane/translate"
)

// acknowledged is what the fleet reports when each pod enforces the policy as it is now.
func (w *world) acknowledged(pods ...string) coordinator.Observation {
	w.Helper()
	enforced, err := translate.Policy(w.get(), nil)
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
	p.Spec.Store.Store = to
	w.Expect(server.Patch(w.Context(), p, client.MergeFrom(before))).To(Succeed())
}

var (
	inController = v1alpha1.Store{Type: v1alpha1.ControllerStore}
	inRedis      = v1alpha1.Store{Type: v1alpha1.RedisStoreType, Redis: &v1alpha1.RedisStore{Address: "redis.shop.svc:6379", TLS: v1alpha1.TLSDisabled}}
)

func TestAMoveToAnotherStoreWaitsForEverySidecar(t *testing.T) {
	w := newWorld(t)
	a, b := w.enforcer("a"), w.enforcer("b")
	fleet.say(w.policy, w.acknowledged(a, b))
	w.Eventually(w.phase).Should(Equal(v1alpha1.StoreServing))
	w.Expect(w.get().Status.Store.ServesFrom).To(BeNil(), "the first store serves all that it remembers")
	w.Expect(w.get().Status.Store.Since.Time).To(BeTemporally("==", clock.Now().Truncate(time.Second)))

	w.editStore(inRedis)
	w.Eventually(w.phase).Should(Equal(v1alpha1.StoreWaiting), "nobody has acknowledged the edit")
	w.Expect(w.get().Status.Store.Active).To(Equal(inController))

	fleet.say(w.policy, w.acknowledged(a))
	w.Consistently(w.phase).Should(Equal(v1alpha1.StoreWaiting))
	w.Expect(w.get().Status.Store.Message).To(ContainSubstring("b ("))

	fleet.say(w.policy, w.acknowledged(a, b))
	w.Eventually(w.phase).Should(Equal(v1alpha1.StoreDraining))

	o := w.acknowledged(a, b)
	stale := *o.Sessions[1].Enforced
	stale.Draining = false
	o.Sessions[1].Enforced = &stale // b did not let go yet
	fleet.say(w.policy, o)
	w.Consistently(w.phase).Should(Equal(v1alpha1.StoreDraining))

	fleet.say(w.policy, w.acknowledged(a, b))
	w.Eventually(w.phase).Should(Equal(v1alpha1.StoreServing))
	status := w.get().Status.Store
	w.Expect(status.Active).To(Equal(inRedis))
	w.Expect(status.ServesFrom.Time).To(BeTemporally("==", clock.Now().Add(time.Minute+time.Microsecond)), "the clock of the new store")
}

func TestAMoveIsNotBegunWhileTheNewStoreIsAway(t *testing.T) {
	w := newWorld(t)
	a := w.enforcer("a")
	fleet.say(w.policy, w.acknowledged(a))
	w.Eventually(w.phase).Should(Equal(v1alpha1.StoreServing))
	stores.fail(errors.New("connection refused"))
	defer stores.fail(nil)
	w.editStore(inRedis)
	fleet.say(w.policy, w.acknowledged(a))
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

// TestAMoveThatIsNotFollowedIsTakenBack and tried again, each time after longer.
func TestAMoveThatIsNotFollowedIsTakenBack(t *testing.T) {
	w := newWorld(t)
	a := w.enforcer("a")
	fleet.say(w.policy, w.acknowledged(a))
	w.Eventually(w.phase).Should(Equal(v1alpha1.StoreServing))
	w.editStore(inRedis)
	for failed, pause := range []time.Duration{30 * time.Second, time.Minute} {
		fleet.say(w.policy, w.acknowledged(a))
		w.Eventually(w.phase).Should(Equal(v1alpha1.StoreDraining))
		acknowledged := w.acknowledged(a)
		acknowledged.Sessions[0].Enforced.Draining = false // it goes on asking the old store

		clock.SetTime(clock.Now().Add(9 * time.Second))
		fleet.say(w.policy, acknowledged)
		w.Consistently(w.phase).Should(Equal(v1alpha1.StoreDraining))
		clock.SetTime(clock.Now().Add(time.Second))
		fleet.say(w.policy, acknowledged)
		w.Eventually(w.phase).Should(Equal(v1alpha1.StoreWaiting))
		status := w.get().Status.Store
		w.Expect(status.Active).To(Equal(inController))
		w.Expect(status.ServesFrom).To(BeNil(), "what the old store granted it knows")
		w.Expect(status.Failed).To(BeEquivalentTo(failed + 1))

		clock.SetTime(clock.Now().Add(pause - time.Second))
		fleet.say(w.policy, w.acknowledged(a))
		w.Consistently(w.phase).Should(Equal(v1alpha1.StoreWaiting))
		clock.SetTime(clock.Now().Add(time.Second))
	}
	fleet.say(w.policy, w.acknowledged(a))
	w.Eventually(w.phase).Should(Equal(v1alpha1.StoreDraining))
	fleet.say(w.policy, w.acknowledged(a))
	w.Eventually(w.phase).Should(Equal(v1alpha1.StoreServing))
	w.Expect(w.get().Status.Store.Failed).To(BeZero())
}

// TestAWaitingMoveIsNotWrittenAgainAndAgain: its message stays.
func TestAWaitingMoveIsNotWrittenAgainAndAgain(t *testing.T) {
	w := newWorld(t)
	a := w.enforcer("a")
	fleet.say(w.policy, w.acknowledged(a))
	w.Eventually(w.phase).Should(Equal(v1alpha1.StoreServing))
	w.editStore(inRedis)
	fleet.say(w.policy, w.acknowledged(a))
	w.Eventually(w.phase).Should(Equal(v1alpha1.StoreDraining))
	clock.SetTime(clock.Now().Add(time.Minute))
	held := w.acknowledged(a)
	held.Sessions[0].Enforced.Draining = false
	fleet.say(w.policy, held)
	w.Eventually(w.phase).Should(Equal(v1alpha1.StoreWaiting))
	clock.SetTime(clock.Now().Add(2 * time.Second))
	fleet.say(w.policy, w.acknowledged(a))
	w.Eventually(func() string { return w.get().Status.Store.Message }).Should(ContainSubstring("trying again at"))
	before := w.settle()
	for range 3 {
		clock.SetTime(clock.Now().Add(2 * time.Second))
		fleet.say(w.policy, w.acknowledged(a))
		w.settle()
	}
	w.Expect(w.settle()).To(Equal(before))
}

// TestAStatusThatIsWipedDuringAMoveForgetsNoCaution: which store served is not
// known any more, so all have to let go of whatever it was.
func TestAStatusThatIsWipedDuringAMoveForgetsNoCaution(t *testing.T) {
	w := newWorld(t)
	a, b := w.enforcer("a"), w.enforcer("b")
	fleet.say(w.policy, w.acknowledged(a, b))
	w.Eventually(w.phase).Should(Equal(v1alpha1.StoreServing))
	w.editStore(inRedis)
	fleet.say(w.policy, w.acknowledged(a, b))
	w.Eventually(w.phase).Should(Equal(v1alpha1.StoreDraining))
	o := w.acknowledged(a, b)
	o.Sessions[1].Enforced.Draining = false
	fleet.say(w.policy, o)

	p := w.get()
	before := p.DeepCopy()
	p.Status = v1alpha1.RateLimitPolicyStatus{}
	w.Expect(server.Status().Patch(w.Context(), p, client.MergeFrom(before))).To(Succeed())
	w.eventually(v1alpha1.StoreReachableCondition, v1alpha1.ReachableReason) // it was looked at since
	for range 3 {
		clock.SetTime(clock.Now().Add(time.Minute))
		o := w.acknowledged(a, b)
		o.Sessions[1].Enforced.Draining = false
		fleet.say(w.policy, o)
		w.Consistently(w.phase).Should(BeEmpty())
		enforced, err := translate.Policy(w.get(), nil)
		w.Expect(err).NotTo(HaveOccurred())
		w.Expect(enforced.Draining).To(BeTrue(), "nothing may be asked")
	}
	w.Expect(w.condition(v1alpha1.StoreReachableCondition).Message).To(ContainSubstring("it is not known which store served"))

	fleet.say(w.policy, w.acknowledged(a, b))
	w.Eventually(w.phase).Should(Equal(v1alpha1.StoreServing))
	status := w.get().Status.Store
	w.Expect(status.Active).To(Equal(inRedis))
	w.Expect(status.ServesFrom.Time).To(BeTemporally("==", clock.Now().Add(time.Minute+time.Microsecond)))
}

func TestOtherCredentialsMoveNothing(t *testing.T) {
	w := newWorld(t, func(p *v1alpha1.RateLimitPolicy) { p.Spec.Store.Store = inRedis })
	w.enforcer("a") // which is not connected, so nothing could drain
	w.Eventually(w.phase).Should(Equal(v1alpha1.StoreServing))
	rotated := *inRedis.DeepCopy()
	rotated.Redis.SecretRef = &v1alpha1.SecretReference{Name: "other"}
	w.editStore(rotated)
	w.Eventually(func() v1alpha1.Store { return w.get().Status.Store.Active }).Should(Equal(rotated))
	w.Expect(w.get().Status.Store.ServesFrom).To(BeNil(), "it serves on from where it was")
	w.Expect(w.phase()).To(Equal(v1alpha1.StoreServing))
}

func TestAReplicaThatDoesNotLeadMovesNothing(t *testing.T) {
	w := newWorld(t)
	a := w.enforcer("a")
	fleet.say(w.policy, w.acknowledged(a))
	w.Eventually(w.phase).Should(Equal(v1alpha1.StoreServing))
	fleet.lead(false)
	defer fleet.lead(true)
	w.editStore(inRedis)
	fleet.say(w.policy, w.acknowledged(a))
	w.Eventually(w.phase).Should(Equal(v1alpha1.StoreWaiting))
	w.Consistently(w.phase).Should(Equal(v1alpha1.StoreWaiting))
	w.Expect(w.get().Status.Store.Message).To(ContainSubstring("does not lead"))
}

// TestAccessIsEditedWithTheCountersInPlace: no pod has to let go of anything, and the status
// remembers how the store that serves is reached.
func TestAccessIsEditedWithTheCountersInPlace(t *testing.T) {
	w := newWorld(t)
	a := w.enforcer("a")
	fleet.say(w.policy, w.acknowledged(a))
	w.Eventually(w.phase).Should(Equal(v1alpha1.StoreServing))
	w.editStore(inRedis)
	w.Eventually(w.phase).Should(Equal(v1alpha1.StoreWaiting))
	for _, phase := range []v1alpha1.StorePhase{v1alpha1.StoreDraining, v1alpha1.StoreServing} {
		fleet.say(w.policy, w.acknowledged(a))
		w.Eventually(w.phase).Should(Equal(phase))
	}
	since := w.get().Status.Store.ServesFrom
	for _, access := range []v1alpha1.StoreAccess{v1alpha1.GatewayAccess, v1alpha1.DirectAccess, v1alpha1.GatewayAccess} {
		p := w.get()
		before := p.DeepCopy()
		p.Spec.Store.Access = access
		w.Expect(server.Patch(w.Context(), p, client.MergeFrom(before))).To(Succeed())
		recorded := access
		if access == v1alpha1.DirectAccess {
			recorded = ""
		}
		w.Eventually(func() v1alpha1.StoreAccess { return w.get().Status.Store.Access }).Should(Equal(recorded))
		w.Expect(w.get().Status.Store.ServesFrom).To(Equal(since), "the counters are the same")
		w.Expect(w.phase()).To(Equal(v1alpha1.StoreServing))
	}
	w.editStore(v1alpha1.Store{Type: v1alpha1.RedisStoreType, Redis: &v1alpha1.RedisStore{Address: "other.shop.svc:6379", TLS: v1alpha1.TLSDisabled}})
	w.Consistently(func() v1alpha1.StoreAccess { return w.get().Status.Store.Access }).Should(Equal(v1alpha1.GatewayAccess))
}
