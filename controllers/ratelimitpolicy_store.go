package controllers

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/weir-dev/weir/api/v1alpha1"
	"github.com/weir-dev/weir/internal/controlplane/cutover"
	"github.com/weir-dev/weir/internal/controlplane/translate"
	"github.com/weir-dev/weir/pkg/limiter"
	"github.com/weir-dev/weir/pkg/policy"
)

// move is what a reconciliation knows of the policy's store, and the step that
// follows from it.
type move struct {
	serving  v1alpha1.Store  // that sidecars are sent, also while they let go of it
	from     limiter.Instant // since when it serves, on its own clock
	draining bool
	step     cutover.Step
}

// gatherStore asks the store that serves how firm it is and, when another one is
// wanted, decides the next step towards it.
func (r *RateLimitPolicyReconciler) gatherStore(ctx context.Context, s *scope) {
	var of policy.Store
	of, s.move.from, s.move.draining = translate.Serving(s.policy)
	s.move.serving = s.policy.Spec.Store.Store
	if status := s.policy.Status.Store; status != nil {
		s.move.serving = status.Active
	}
	if of.Type != policy.ControllerStore {
		secret, version, err := r.Secrets.Data(ctx, of)
		s.store.version, s.store.err = version, err
		if err == nil {
			s.store.facts, s.store.err = r.Stores.Probe(ctx, of, secret)
		}
	}
	view := cutover.View{
		Now: s.now, Wanted: s.wantsAnother(), Same: !s.unknown() && sameCounters(of, translate.Wanted(s.policy)), Unknown: s.unknown(),
		Lagging: s.holdsOn(of),
	}
	if _, leads := r.Fleet.Now(); !leads {
		// The replica that leads now may have sent sidecars something else since.
		view.Lagging = "this controller, which does not lead"
	}
	if view.Wanted && (view.Same || view.Lagging == "") {
		view.Clock, view.ClockErr = r.clockOf(ctx, translate.Wanted(s.policy)) // after all acknowledged
	}
	s.move.step = cutover.Next(s.cutover(), view)
}

// unknown reports whether it is not written down which store serves, and it may be
// another than the one that is named now.
func (s *scope) unknown() bool { return s.policy.Status.Store == nil && s.move.draining }

// sameCounters reports whether two stores are one, reached with other credentials,
// with other encryption or in another way.
func sameCounters(a, b policy.Store) bool {
	for _, s := range []*policy.Store{&a, &b} {
		s.TLS, s.Secret, s.SecretVersion, s.Gateway = false, "", "", false
	}
	return a == b
}

// clockOf reads the clock of a store.
func (r *RateLimitPolicyReconciler) clockOf(ctx context.Context, of policy.Store) (limiter.Instant, error) {
	if of.Type == policy.ControllerStore {
		now, ok := r.Fleet.Now()
		if !ok {
			return 0, errors.New("this controller does not lead yet")
		}
		return now, nil
	}
	secret, _, err := r.Secrets.Data(ctx, of)
	if err != nil {
		return 0, err
	}
	return r.Stores.Clock(ctx, of, secret)
}

// wantsAnother reports whether another store is to serve. One that was not written down
// may be any.
func (s *scope) wantsAnother() bool {
	if s.policy.Status.Store == nil {
		return s.unknown()
	}
	return !equality.Semantic.DeepEqual(s.move.serving, s.policy.Spec.Store.Store)
}

// cutover returns how far the move is.
func (s *scope) cutover() cutover.State {
	status := s.policy.Status.Store
	state := cutover.State{Phase: cutover.Serving, Since: s.now}
	if s.move.draining {
		state.Phase = cutover.Draining
	}
	if status != nil {
		state.Failed = int(status.Failed)
		if status.Since != nil {
			state.Since = status.Since.Time
		}
	}
	return state
}

// holdsOn names the holders that may use the store otherwise than they were sent
// last; empty when there are none. A pod that is on its way out still serves.
func (s *scope) holdsOn(of policy.Store) string {
	sessions := s.sessions()
	var lagging []laggard
	for _, e := range slices.Concat(s.pods.enforcers, s.pods.leaving) {
		session, connected := sessions[string(e.uid)]
		delete(sessions, string(e.uid))
		switch {
		case connected && session.Error != "":
			lagging = append(lagging, laggard{e.name, "refused it: " + session.Error})
		case connected && s.enforcedBy(session.Enforced, of):
		case connected:
			lagging = append(lagging, laggard{e.name, "has not acknowledged it"})
		case e.running:
			lagging = append(lagging, laggard{e.name, "not connected"})
		}
	}
	for _, session := range sessions { // of pods that the cache does not know any more
		if !s.enforcedBy(session.Enforced, of) {
			lagging = append(lagging, laggard{session.Pod, "has not acknowledged it"})
		}
	}
	slices.SortFunc(lagging, func(a, b laggard) int { return cmp.Compare(a.pod, b.pod) })
	return nameSome(lagging)
}

// enforcedBy reports whether a sidecar enforces the policy as it is now, with this store.
func (s *scope) enforcedBy(enforced *policy.Policy, of policy.Store) bool {
	if enforced == nil || enforced.Generation != translate.Generation(s.policy) {
		return false
	}
	store := enforced.Store
	store.SecretVersion = ""
	return store == of && enforced.Since == s.move.from && enforced.Draining == s.move.draining
}

// maxMessage is how many characters of a message the API takes.
const maxMessage = 1024

// storeStatus returns what the status says of the store after the step: nothing
// while it is not known which one serves, since whatever is written is taken for it.
func storeStatus(s *scope) *v1alpha1.StoreStatus {
	step := s.move.step
	if s.unknown() && !step.Moved {
		return nil
	}
	status := &v1alpha1.StoreStatus{
		Active:     s.move.serving,
		Access:     accessOf(s.move.serving, translate.Access(s.policy)),
		ServesFrom: servesFrom(s.move.from),
		Phase:      v1alpha1.StoreServing,
		Message:    shortened(step.Message),
		Since:      &metav1.Time{Time: step.State.Since.Truncate(time.Second)},
		Failed:     int32(min(step.State.Failed, 1<<20)),
		Restart:    s.restart(),
	}
	switch {
	case step.Moved:
		status.Active = s.policy.Spec.Store.Store
		status.Access = accessOf(status.Active, s.policy.Spec.Store.Access)
		if step.At != 0 {
			status.ServesFrom = servesFrom(step.At)
		}
	case step.State.Phase == cutover.Draining:
		status.Phase = v1alpha1.StoreDraining
	case step.Message != "":
		status.Phase = v1alpha1.StoreWaiting
	}
	if have := s.policy.Status.Store; have != nil && have.Phase == status.Phase && have.Since != nil && !step.Moved {
		status.Since = have.Since
	}
	return status
}

// accessOf returns what a status says of how a store is reached: nothing of the usual way.
func accessOf(of v1alpha1.Store, access v1alpha1.StoreAccess) v1alpha1.StoreAccess {
	if of.Type == v1alpha1.ControllerStore || access == v1alpha1.DirectAccess {
		return ""
	}
	return access
}

// restart returns what a restart does to durable counters, by what the store that served
// until now said; nothing of one that takes over, which was not asked yet.
func (s *scope) restart() v1alpha1.StoreRestart {
	switch {
	case !s.move.remote() || s.move.step.Moved || s.store.err != nil:
		return ""
	case s.store.facts.Lossless:
		return v1alpha1.LosslessRestart
	}
	return v1alpha1.LossyRestart
}

func shortened(message string) string {
	if characters := []rune(message); len(characters) > maxMessage {
		return string(characters[:maxMessage-1]) + "…"
	}
	return message
}

func servesFrom(at limiter.Instant) *metav1.MicroTime {
	if at == 0 {
		return nil
	}
	return &metav1.MicroTime{Time: time.UnixMicro(int64(at))}
}

// moving says how far the move to another store is; empty when there is none.
func (s *scope) moving() string {
	switch step := s.move.step; {
	case step.Moved || step.Message == "":
		return ""
	case s.unknown():
		return "; requests are refused: " + step.Message
	case step.State.Phase == cutover.Draining:
		return fmt.Sprintf("; requests are refused while the counters move to %s: %s", storeName(s.policy, s.policy.Spec.Store.Store), step.Message)
	default:
		return fmt.Sprintf("; the counters are to move to %s: %s", storeName(s.policy, s.policy.Spec.Store.Store), step.Message)
	}
}

// remote reports whether the store that serves is not the controller itself.
func (m *move) remote() bool {
	return m.serving.Type == v1alpha1.RedisStoreType || m.serving.Type == v1alpha1.PostgresStoreType
}

// storeName is how messages call a store of the policy.
func storeName(p *v1alpha1.RateLimitPolicy, of v1alpha1.Store) string {
	if of.Type == v1alpha1.ControllerStore {
		return "the controller"
	}
	at := p.DeepCopy()
	at.Status.Store = &v1alpha1.StoreStatus{Active: of}
	named, _, _ := translate.Serving(at)
	return fmt.Sprintf("%s at %s", of.Type, named.Address)
}
