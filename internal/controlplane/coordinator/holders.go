package coordinator

import (
	"context"
	"maps"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/weir-dev/weir/internal/controlplane/coordinator/absence"
	"github.com/weir-dev/weir/internal/fleetpb"
	"github.com/weir-dev/weir/pkg/limiter"
)

const (
	// holdersDelay gathers changes of the number of holders.
	holdersDelay = 200 * time.Millisecond
	// podsInterval is how often it is looked whether pods are gone whose sidecars are absent.
	podsInterval = time.Second
	// figuresTime is how long a new leader waits for sidecars before it takes what they
	// report for all there is.
	figuresTime = 4 * time.Second
)

// countHolders has the namespace's sessions sent the number of holders soon.
func (t *term) countHolders(namespace string) {
	t.tasks.AddAfter(task{namespace: namespace, count: true}, holdersDelay)
}

// arrive notes that the holder of the session is back, once it sent something. One that is
// asked to promise is back when it does.
func (t *term) arrive(s *session) {
	if s.isBack() || s.promises && t.absences.Asking(s.Namespace) {
		return
	}
	t.roll.RLock()
	defer t.roll.RUnlock()
	t.absences.Arrive(s.Identity, s.shares())
	t.arrived(s)
}

// arrived has a holder that is back be one of those that are counted. t.roll is held.
func (t *term) arrived(s *session) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.back {
		return
	}
	s.back = true
	if s.serves != nil {
		t.absences.Enter(s.PodUID, s.serves.policies)
	}
	t.countHolders(s.Namespace)
}

// dismiss takes a session off, and reports whether it was its pod's. The holder has left in
// order, or may go on by itself.
func (t *term) dismiss(s *session, left bool) bool {
	t.roll.RLock()
	defer t.roll.RUnlock()
	own := t.sessions.remove(s)
	t.promises.Leave(s) // afterwards, see askLast
	switch {
	case !own:
		return false
	case left:
		t.absences.Leave(s.PodUID)
	case t.Pods != nil:
		t.absences.Lose(s.Identity, s.shares())
	}
	return true
}

// lookForPods looks until ctx is done whether pods are gone whose sidecars are absent.
func (t *term) lookForPods(ctx context.Context) {
	wait.UntilWithContext(ctx, func(ctx context.Context) {
		for _, namespace := range t.absences.Namespaces() {
			if err := t.settle(ctx, namespace); err != nil && ctx.Err() == nil {
				t.log.Error(err, "it is not known which pods are gone; their shares are kept", "namespace", namespace)
			}
			t.countHolders(namespace)
		}
	}, podsInterval)
}

// settle notes which pods of the namespace are gone, and which policies apply to none that
// is awaited. Any policy may apply to a pod that cannot be resolved.
func (t *term) settle(ctx context.Context, namespace string) error {
	pods, err := t.pods(ctx, namespace)
	if err != nil {
		return err
	}
	there := make(map[string]struct{}, len(pods))
	for _, id := range pods {
		there[id.PodUID] = struct{}{}
	}
	resolve, err := t.Resolver.Namespace(ctx, namespace)
	if err != nil {
		return err
	}
	held, any := map[types.NamespacedName]struct{}{}, false
	for _, id := range t.absences.Absent(namespace) {
		if _, ok := there[id.PodUID]; !ok {
			continue
		}
		snapshot, err := resolve(ctx, id.Pod, id.PodUID)
		if err != nil {
			any = true
			break
		}
		for i := range snapshot.Policies {
			held[types.NamespacedName{Namespace: snapshot.Policies[i].Namespace, Name: snapshot.Policies[i].Name}] = struct{}{}
		}
	}
	t.absences.Settle(namespace, there, func(name types.NamespacedName) bool {
		_, ok := held[name]
		return ok || any
	})
	return nil
}

// sendHolders sends each session of the namespace the number of holders that enforce what
// it enforces. While one of them was sent nothing it may enforce what nobody knows of,
// and no number falls.
func (t *term) sendHolders(namespace string) {
	in, counted := t.count(namespace)
	if before := t.counts[namespace]; before.same(counted) {
		counted = before
	}
	t.counts[namespace] = counted
	used := map[*config]struct{}{}
	for _, s := range in {
		by, _ := s.served()
		used[by] = struct{}{}
		s.sendHolders(counted, t.absences)
	}
	if len(in) == 0 {
		delete(t.counts, namespace)
	}
	t.configs.keep(namespace, used)
	t.gateways.Retain(t.configs.gateways())
}

// numbers are those of the holders of a namespace's policies that are to be sent to its sessions, and
// whether all of them were sent what they enforce.
type numbers struct {
	holders map[types.NamespacedName]int64
	all     bool
}

// same reports whether the numbers of c, which may be nil, are those of other.
func (c *numbers) same(other *numbers) bool {
	return c != nil && c.all == other.all && maps.Equal(c.holders, other.holders)
}

// count returns the sessions of the namespace and what is to be sent to them. The sessions and the
// shares in use are of one instant: a holder that is missing in one of the two would change
// the number, and all sessions would be sent another one again and again while a fleet comes
// back.
func (t *term) count(namespace string) (in []*session, c *numbers) {
	t.roll.Lock()
	defer t.roll.Unlock()
	in = t.sessions.in(namespace)
	holders, all := map[types.NamespacedName]int64{}, true
	away := map[types.NamespacedName]map[string]int64{}
	served := map[*config]int64{}
	for _, s := range in {
		by, sent := s.served()
		all = all && sent
		if !s.isBack() {
			for policy, n := range s.shares() { // it has the share that it had
				if away[policy] == nil {
					away[policy] = map[string]int64{}
				}
				away[policy][s.PodUID] = n
			}
			continue
		}
		served[by]++
	}
	for by, n := range served {
		if by == nil {
			continue // it is not known which policies they enforce
		}
		for policy := range by.policies {
			holders[policy] += n
		}
	}
	for name, n := range holders {
		holders[name] = t.absences.Divisor(name, n, away[name])
	}
	return in, &numbers{holders, all}
}

// isBack reports whether the holder is back.
func (s *session) isBack() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.back
}

// shares returns the number of holders of each policy that was sent to it.
func (s *session) shares() map[types.NamespacedName]int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return maps.Clone(s.holders)
}

// sendHolders sends the holder the counts that are news to it; those that are not all
// there may be only when they are higher. When it has these already, only the policies that it is
// served by since then are looked at.
func (s *session) sendHolders(c *numbers, absences *absence.Tracker) {
	message := &fleetpb.Holders{}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.serves == nil || !s.back {
		return
	}
	had := s.counted
	if had.all != c {
		had.of = nil
	}
	s.counted = sentNumbers{c, s.serves}
	for name := range s.serves.from(had.of).policies {
		n := c.holders[name]
		switch news := n > s.holders[name] || c.all && n > 0 && n != s.holders[name]; {
		case news && !absences.MaySend(s.Identity, name, n):
			s.counted = sentNumbers{} // it is looked at again
		case news:
			s.holders[name] = n
			message.Counts = append(message.Counts, &fleetpb.Holders_Count{
				Namespace: name.Namespace, Policy: name.Name, Holders: n,
			})
		}
	}
	if len(message.Counts) > 0 {
		s.push(&fleetpb.ToHolder{Message: &fleetpb.ToHolder_Holders{Holders: message}})
	}
}

// sentNumbers are those that a holder has, of the policies of a config.
type sentNumbers struct {
	all *numbers
	of  *config
}

// askPromises has sidecars promise until ctx is done.
func (t *term) askPromises(ctx context.Context) {
	wait.UntilWithContext(ctx, func(context.Context) {
		for _, namespace := range t.sessions.namespaces() {
			if m := t.absences.Ask(namespace); m != nil {
				for _, s := range t.sessions.in(namespace) {
					s.ask(m)
				}
			}
		}
	}, absence.PromiseInterval)
}

// ask makes the holder promise, if its version does.
func (s *session) ask(m *fleetpb.ToHolder) {
	if s.promises && m != nil {
		s.push(m)
	}
}

// askLast has the holder promise to begin no window by itself that this leader may serve, which is to end.
func (t *term) askLast(s *session) {
	if !s.promises {
		return
	}
	until := t.promises.Join(s)
	switch {
	case until == 0:
	case t.sessions.of(s.PodUID) != s: // it may have left before it joined
		t.promises.Leave(s)
	default:
		s.push(absence.Request(t.clock.Now(), until))
	}
}

// promised enters what the holder promises: it is back.
func (t *term) promised(s *session, p *fleetpb.Promise) {
	until := limiter.Instant(p.GetUntilMicros())
	t.promises.Make(s, until)
	t.roll.RLock()
	defer t.roll.RUnlock()
	if t.absences.Promise(s.Identity, s.nonce, s.shares(), limiter.Instant(p.GetBegunMicros()), until) {
		t.arrived(s)
	}
}
