package coordinator

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/weir-dev/weir/internal/controlplane/coordinator/births"
	"github.com/weir-dev/weir/internal/controlplane/translate"
	"github.com/weir-dev/weir/internal/fleetpb"
	"github.com/weir-dev/weir/pkg/policy"
)

const (
	// retryAfter and retryAtMost space attempts to resolve what is not resolved.
	retryAfter  = 100 * time.Millisecond
	retryAtMost = 10 * time.Second
)

// A task is something the publisher has to do.
type task struct {
	namespace string
	podUID    string // of the one session to serve; empty for all of the namespace
	fresh     bool   // serve those sessions of the namespace that no task was for yet
	count     bool   // send the namespace's sessions the number of holders
}

// publish works on tasks until ctx is done.
func (t *term) publish(ctx context.Context) {
	defer context.AfterFunc(ctx, t.tasks.ShutDown)()
	for {
		next, done := t.tasks.Get()
		if done {
			return
		}
		if err := t.do(ctx, next); err != nil {
			t.log.Error(err, "sidecars lack some of their configuration; trying again", "namespace", next.namespace)
			t.tasks.AddRateLimited(next)
		} else {
			t.tasks.Forget(next)
		}
		t.tasks.Done(next)
	}
}

func (t *term) do(ctx context.Context, next task) error {
	if next.count {
		t.sendHolders(next.namespace)
		return nil
	}
	if next.fresh {
		t.publishNew(ctx, next.namespace)
		return nil
	}
	if next.podUID == "" {
		return t.publishAll(ctx, next.namespace)
	}
	s := t.sessions.of(next.podUID)
	if s == nil {
		return nil
	}
	p, err := t.publication(ctx, next.namespace)
	if err != nil {
		return err
	}
	return p.to(ctx, s)
}

// publishNew serves the sessions of the namespace that are new. A fleet that comes back is served by
// one read for all that came meanwhile. Those that cannot be served are tried again one by one.
func (t *term) publishNew(ctx context.Context, namespace string) {
	in := t.sessions.takeNew(namespace)
	if len(in) == 0 {
		return
	}
	p, err := t.publication(ctx, namespace)
	for _, s := range in {
		failed := err
		if failed == nil {
			failed = p.to(ctx, s)
		}
		if failed != nil {
			t.log.Error(failed, "a sidecar lacks some of its configuration; trying again", "namespace", namespace, "pod", s.Pod)
			t.tasks.AddRateLimited(task{namespace: namespace, podUID: s.PodUID})
		}
	}
}

func (t *term) publishAll(ctx context.Context, namespace string) error {
	in := t.sessions.in(namespace)
	if len(in) == 0 {
		return nil
	}
	p, err := t.publication(ctx, namespace)
	if err != nil {
		return err
	}
	var failed int
	var first error
	for _, s := range in {
		if err := p.to(ctx, s); err != nil {
			failed++
			first = cmp.Or(first, err)
		}
	}
	if first != nil {
		return fmt.Errorf("%d of %d sidecars, for example: %w", failed, len(in), first)
	}
	return nil
}

// A publication serves the sessions of a namespace from one read for all of them: work is
// done for each set of policies that pods enforce, not for each pod.
type publication struct {
	*term
	namespace string
	resolve   func(ctx context.Context, pod, podUID string) (*policy.Snapshot, error)
	ready     map[*policy.Snapshot]prepared
}

func (t *term) publication(ctx context.Context, namespace string) (*publication, error) {
	resolve, err := t.Resolver.Namespace(ctx, namespace)
	if err != nil {
		return nil, fmt.Errorf("resolve the policies: %w", err)
	}
	return &publication{term: t, namespace: namespace, resolve: resolve, ready: map[*policy.Snapshot]prepared{}}, nil
}

// prepared is a config and, when that is a part, what it waits for.
type prepared struct {
	config *config
	held   error
}

// to sends a session what its pod has to enforce, if that is news. When it has only a part
// it still fails, and sends the part only to a session that loses nothing by it. A session
// that was sent nothing else is at least served by the part.
func (p *publication) to(ctx context.Context, s *session) error {
	snapshot, unresolved := p.resolve(ctx, s.Pod, s.PodUID)
	_, partial := errors.AsType[*translate.PartialError](unresolved)
	if unresolved != nil {
		unresolved = fmt.Errorf("resolve the policies of pod %s: %w", s.Pod, unresolved)
	}
	if unresolved != nil && !partial {
		return unresolved
	}
	next, err := p.config(ctx, snapshot)
	if err != nil {
		err = fmt.Errorf("the policies of pod %s: %w", s.Pod, err)
		if next == nil {
			return err
		}
		partial, unresolved = true, errors.Join(unresolved, err)
	}
	by, sent := s.served()
	send := !partial || s.losesNothing(next)
	if news := by != next || sent != send; news && (send || !sent) {
		p.serveBy(s, next, send)
	}
	return unresolved
}

// config returns the message for all pods that enforce the snapshot, and its counters are
// open. With a *births.HeldError it is that of a part.
func (p *publication) config(ctx context.Context, of *policy.Snapshot) (*config, error) {
	if done, ok := p.ready[of]; ok {
		return done.config, done.held
	}
	born := *of
	held := p.births.Fill(ctx, &born)
	if _, waits := errors.AsType[*births.HeldError](held); held != nil && !waits {
		return nil, held
	}
	c, err := p.configs.of(p.namespace, born, func(s policy.Snapshot) ([]*fleetpb.Secret, error) { return p.secrets(ctx, s) })
	if err != nil {
		return nil, err
	}
	for i := range c.snapshot.Policies {
		if of := c.snapshot.Policies[i].Store; of.Gateway {
			p.gateways.Keep(ctx, of)
		}
	}
	p.openCounters(c)
	p.ready[of] = prepared{c, held}
	return c, held
}

// serveBy has the session accounted for and served by next. The holder is sent it only if
// send is true; a part may be withheld. Without room for what next takes, the session ends.
func (t *term) serveBy(s *session, next *config, send bool) {
	if err := s.fit(len(next.limits) + len(next.pools)); err != nil {
		s.close(err)
		return
	}
	s.reporting.Lock()
	defer s.reporting.Unlock()
	changed := s.changing(next, send)
	t.notify(s, changed)
	before, _ := s.served()
	t.accounting.enforce(s.holder, next, before, s.lacksSome())
	t.poolAccounting.enforce(s.holder, next.pools, s.servingPools())
	t.sendClocks(s, next)
	t.roll.RLock()
	message := s.serve(next, send)
	t.absences.Enter(s.PodUID, next.from(before).policies) // the others were entered before
	t.roll.RUnlock()
	if message != nil {
		s.push(message)
		t.metrics.pushes.Inc()
	}
	t.reportEarly(s)
	if t.sessions.of(s.PodUID) != s {
		t.accounting.lose(s.holder, s.policies()) // it ended meanwhile
		t.poolAccounting.leave(s.holder, s.servingPools())
	}
	t.notify(s, changed)
	t.countHolders(s.Namespace)
}

// secrets returns the credentials of the stores of the snapshot that holders connect to, and
// of its pools' coordinators.
func (t *term) secrets(ctx context.Context, s policy.Snapshot) ([]*fleetpb.Secret, error) {
	var out []*fleetpb.Secret
	fetched := map[policy.Store]struct{}{}
	add := func(of policy.Store, kind, namespace, name string) error {
		if _, ok := fetched[of]; ok || of.SecretVersion == "" || of.Gateway {
			return nil
		}
		fetched[of] = struct{}{}
		data, err := t.Resolver.Secret(ctx, of)
		if err != nil {
			return fmt.Errorf("the credentials of %s %s/%s: %w", kind, namespace, name, err)
		}
		out = append(out, &fleetpb.Secret{Name: of.Secret, Version: of.SecretVersion, Data: policy.Credentials(data)})
		return nil
	}
	for _, p := range s.Policies {
		if err := add(p.Store, "policy", p.Namespace, p.Name); err != nil {
			return nil, err
		}
	}
	if p := s.Pool; p != nil {
		if err := add(p.Coordinator, "pool", p.Namespace, p.Name); err != nil {
			return nil, err
		}
	}
	for i := range s.Pools {
		p := &s.Pools[i]
		if err := add(p.Coordinator, "pool", p.Namespace, p.Name); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// serve has the holder be served by next. If it is to be sent that, serve returns what is to be
// sent: nothing when the holder said as it connected that it enforces that
// already. Credentials, which it may not have, are always sent. A holder that was sent another
// config before is sent what changed, whether it enforces that or not: when it does not, it says so.
func (s *session) serve(next *config, send bool) (message *fleetpb.ToHolder) {
	s.mu.Lock()
	defer s.mu.Unlock()
	enforces := send && !s.sent && s.offered == next.version
	if send && (!enforces || next.secret) {
		message = next.message
	}
	if s.edits && s.sent && send {
		s.edit = next.editOf(s.serves)
		message = cmp.Or(s.edit, message)
	} else {
		s.edit = nil
	}
	if s.serves == nil {
		close(s.known)
	}
	s.serves, s.sent, s.refusal = next, send, ""
	maps.Copy(s.pools, next.pools)
	if enforces {
		s.acked = next
	}
	return message
}

// losesNothing reports whether part, which is not all that the holder has to enforce,
// has a version of all that the holder enforces. For a holder that was sent nothing in this
// term, only the version of what it enforces is known. Unless that is one that a pod begins
// with, it may be more than the part.
func (s *session) losesNothing(part *config) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.sent {
		return part.covers(s.serves)
	}
	return s.offered == "" || s.offered == part.version ||
		s.offered == versionOf(withoutSecrets(part.snapshot)) ||
		s.offered == versionOf(policy.Snapshot{Cluster: part.snapshot.Cluster})
}

// lacksSome reports whether the holder is served by a part: it may enforce more.
func (s *session) lacksSome() bool {
	by, sent := s.served()
	return by != nil && !sent
}

// covers reports whether all policies and pools of other are in c, and no limit is pending
// that is in force there. Where other has its one pool of all requests, another may be it.
func (c *config) covers(other *config) bool {
	for name, p := range other.policies {
		if !c.has(name) {
			return false
		}
		for _, l := range p.Limits {
			if !l.Pending && c.isPending(name, l.Name) {
				return false
			}
		}
	}
	for i := range other.snapshot.Pools {
		p := &other.snapshot.Pools[i]
		if !c.hasPool(types.NamespacedName{Namespace: p.Namespace, Name: p.Name}) {
			return false
		}
	}
	return c.snapshot.Pool != nil || other.snapshot.Pool == nil
}

// isPending reports whether a limit of a policy in c is pending.
func (c *config) isPending(name types.NamespacedName, limit string) bool {
	return slices.ContainsFunc(c.policies[name].Limits, func(l policy.Limit) bool { return l.Name == limit && l.Pending })
}

// withoutSecrets returns s as a pod is created with: credentials come by the stream, keys of
// tokens that are read from elsewhere, and whether and when a limit was born.
func withoutSecrets(s policy.Snapshot) policy.Snapshot {
	s.Policies = slices.Clone(s.Policies)
	for i := range s.Policies {
		p := &s.Policies[i]
		p.Store.SecretVersion = ""
		p.JWTProviders = slices.Clone(p.JWTProviders)
		for j := range p.JWTProviders {
			if provider := &p.JWTProviders[j]; provider.Reads() {
				provider.Keys = ""
			}
		}
		p.Limits = slices.Clone(p.Limits)
		for j := range p.Limits {
			p.Limits[j].Retention.Born, p.Limits[j].Pending = nil, false
		}
	}
	if s.Pool != nil {
		p := *s.Pool
		p.Coordinator.SecretVersion = ""
		s.Pool = &p
	}
	s.Pools = slices.Clone(s.Pools)
	for i := range s.Pools {
		s.Pools[i].Coordinator.SecretVersion = ""
	}
	return s
}

// versionOf returns the version of a snapshot, "" of one that cannot be encoded.
func versionOf(s policy.Snapshot) string {
	_, version, _ := policy.Encode(s)
	return version
}

// sendClocks sends the holder what is known of the clock of each store that it asks by a
// configuration, once for each store. A holder that has asked a store knows what its clock
// showed; one that has just started does not. A store that lost its memory while its clock
// was set back would serve such a holder a window again. The instants are of the
// controller's own looks at the stores, never of what other holders say, so no pod can hold
// up another. s.reporting is held.
func (t *term) sendClocks(s *session, by *config) {
	if t.Reached == nil {
		return
	}
	var out []*fleetpb.Clocks_Clock
	for _, of := range by.servers {
		server := of.Server()
		if _, known := s.clocks[server]; known {
			continue
		}
		if known := t.Reached(of); known.Now > 0 {
			s.clocks[server] = struct{}{}
			out = append(out, &fleetpb.Clocks_Clock{
				Server: server, NowMicros: int64(known.Now), DoubtfulMicros: int64(known.Doubtful),
			})
		}
	}
	if len(out) > 0 {
		s.push(&fleetpb.ToHolder{Message: &fleetpb.ToHolder_Clocks{Clocks: &fleetpb.Clocks{Clocks: out}}})
	}
}
