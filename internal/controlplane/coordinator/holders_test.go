package coordinator

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/types"

	"github.com/weir-dev/weir/internal/controlplane/coordinator/absence"
	"github.com/weir-dev/weir/internal/controlplane/coordinator/podauth"
	"github.com/weir-dev/weir/internal/controlplane/coordinator/records"
	"github.com/weir-dev/weir/internal/fleetpb"
	"github.com/weir-dev/weir/pkg/limiter"
	"github.com/weir-dev/weir/pkg/policy"
)

// TestASidecarIsBackOnceItPromised what its leader asks it for; one of an earlier version is
// not asked.
func TestASidecarIsBackOnceItPromised(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := limited("shop", 1, 10, 4*limiter.Second)
		l := lead(t, &memoryTerms{left: records.Handover{Term: 1}}, publishing(p), podsOf(pod("shop", "web-0"), pod("shop", "web-1")).watched)
		defer l.end()
		s := l.dial(tokenOf(pod("shop", "web-0")))
		defer s.close()
		hello := helloOf(pod("shop", "web-0"), "1")
		hello.Promises, hello.ConfigVersion = true, wholeOf(nil, p)
		hello.Holders = []*fleetpb.Holders_Count{{Namespace: p.Namespace, Policy: p.Name, Holders: 2}}
		s.send(&fleetpb.FromHolder{Message: &fleetpb.FromHolder_Hello{Hello: hello}})
		if m := s.recv(); m.GetWelcome() == nil {
			t.Fatalf("got %v, want a welcome", m)
		}
		request := s.recv().GetPromise()
		if request == nil {
			t.Fatal("a sidecar that comes back is not asked to promise")
		}
		s.report()
		if l.present.Load().sessions.of("web-0-uid").isBack() {
			t.Error("the sidecar is back before it promised")
		}
		s.send(&fleetpb.FromHolder{Message: &fleetpb.FromHolder_Promise{Promise: &fleetpb.Promise{UntilMicros: request.GetUntilMicros()}}})
		synctest.Wait()
		if !l.present.Load().sessions.of("web-0-uid").isBack() {
			t.Error("the sidecar promised and is not back")
		}
		other := l.comeBack(pod("shop", "web-1"), p, 2)
		defer other.close()
		if !l.present.Load().sessions.of("web-1-uid").isBack() {
			t.Error("a sidecar that does not promise is not back")
		}
		time.Sleep(absence.PromiseInterval)
		synctest.Wait()
		for m := s.recv(); m.GetPromise() == nil; m = s.recv() {
			if m.GetHolders() == nil {
				t.Fatalf("got %v, want another request", m)
			}
		}
	})
}

// pods are those that the API server knows.
type pods struct {
	mu  sync.Mutex
	all []podauth.Identity
}

func podsOf(all ...podauth.Identity) *pods { return &pods{all: all} }

// watched has a leader know the pods.
func (p *pods) watched(c *Config) {
	c.Pods = func(_ context.Context, namespace string) (in []podauth.Identity, err error) {
		p.mu.Lock()
		defer p.mu.Unlock()
		for _, id := range p.all {
			if namespace == "" || id.Namespace == namespace {
				in = append(in, id)
			}
		}
		return in, nil
	}
}

// gone deletes a pod.
func (p *pods) gone(name string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	var left []podauth.Identity
	for _, id := range p.all {
		if id.Pod != name {
			left = append(left, id)
		}
	}
	p.all = left
}

// comeBack connects the sidecar of a pod that was sent a number of holders of the policy
// before, 0 for none.
func (l *leader) comeBack(id podauth.Identity, p policy.Policy, holders int64) *sidecar {
	l.t.Helper()
	s := l.dial(tokenOf(id))
	hello := helloOf(id, "1")
	hello.ConfigVersion = wholeOf(nil, p)
	if holders > 0 {
		hello.Holders = []*fleetpb.Holders_Count{{Namespace: p.Namespace, Policy: p.Name, Holders: holders}}
	}
	s.send(&fleetpb.FromHolder{Message: &fleetpb.FromHolder_Hello{Hello: hello}})
	if m := s.recv(); m.GetWelcome() == nil {
		l.t.Fatalf("got %v, want a welcome", m)
	}
	synctest.Wait()
	s.report()
	return s
}

// requireGranted asks for a whole limit, requires a grant of want units, and gives them
// back.
func requireGranted(t *testing.T, when string, s *sidecar, p policy.Policy, want int64) {
	t.Helper()
	reply := s.lease(p, p.Limits[0], func(r *fleetpb.LeaseRequest) { r.Want = p.Limits[0].Rates[0].Limit })
	if reply.GetGranted() != want {
		t.Errorf("%s: granted %d, want %d: %v", when, reply.GetGranted(), want, reply)
	}
}

// requireTold fails unless the pods were sent that number of holders.
func requireTold(t *testing.T, l *leader, p policy.Policy, want int64, pods ...string) {
	t.Helper()
	for _, name := range pods {
		if got := l.holdersOf(pod(p.Namespace, name), p); got != want {
			t.Errorf("%s was sent %d holders, want %d", name, got, want)
		}
	}
}

// TestTheNextLeaderKnowsWhoWasAbsent: it goes on with a window that began while sidecars
// were, and with others.
func TestTheNextLeaderKnowsWhoWasAbsent(t *testing.T) {
	for name, change := range map[string]struct {
		lost bool // what the leader knew
		want int64
	}{
		"it is handed over": {want: 1},
		"it is lost":        {lost: true},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p, terms := limited("shop", 1, 10, 4*limiter.Second), &memoryTerms{left: records.Handover{Term: 1}}
				fleet := podsOf(pod("shop", "web-0"), pod("shop", "web-1"))
				l := lead(t, terms, publishing(p), fleet.watched)
				s := l.comeBack(pod("shop", "web-0"), p, 2)
				sleepToWindow(4 * limiter.Second)
				time.Sleep(100 * time.Millisecond)
				requireLeased(t, s, p, 4, 4)
				s.close()
				l.end()
				if change.lost {
					terms.left.Returns = []byte(`{"others":[{"from":1,"until":` + fmt.Sprint(time.Now().UnixMicro()) + `}]}`)
				}
				l = lead(t, terms, publishing(p), fleet.watched)
				defer l.end()
				s = l.comeBack(pod("shop", "web-0"), p, 2)
				defer s.close()
				other := l.comeBack(pod("shop", "web-1"), p, 2)
				defer other.close()
				requireLeased(t, s, p, 10, change.want)
				sleepToWindow(4 * limiter.Second)
				requireLeased(t, s, p, 10, 10)
			})
		})
	}
}

// requireLeased asks for ask units and requires a grant of granted units.
func requireLeased(t *testing.T, s *sidecar, p policy.Policy, ask, granted int64) {
	t.Helper()
	if reply := s.lease(p, p.Limits[0], want(ask)); reply.GetGranted() != granted {
		t.Errorf("granted %d of %d, want %d: %v", reply.GetGranted(), ask, granted, reply)
	}
}

// TestTheNumberStaysWhileSidecarsComeAndGo: holders are counted again and again while streams
// break and come back. Each count finds those that are back together with the shares that they
// brought, and those that are lost with the shares that they took along: so the number is the same.
func TestTheNumberStaysWhileSidecarsComeAndGo(t *testing.T) {
	const n, atOnce, rounds = 32, 4, 100
	p := limited("shop", 1, 10*n, 10*limiter.Second)
	name := types.NamespacedName{Namespace: p.Namespace, Name: p.Name}
	config, err := newConfig(policy.Snapshot{Cluster: "test", Policies: []policy.Policy{p}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	var ids []podauth.Identity
	for i := range n {
		ids = append(ids, pod("shop", fmt.Sprint("web-", i)))
	}
	settings := Config{Terms: &memoryTerms{}, Resolver: publishing(p)}
	podsOf(ids...).watched(&settings)
	leader := newTerm(New(settings), records.Handover{Term: 2}, logr.Discard())
	defer leader.tasks.ShutDown()
	leader.absences.Await(ids)
	var publishing sync.Mutex
	come := func(id podauth.Identity) *session {
		s := newSession(id, &fleetpb.Hello{BootNonce: "1", Promises: true, Holders: []*fleetpb.Holders_Count{
			{Namespace: p.Namespace, Policy: p.Name, Holders: n},
		}}, func(error) {})
		leader.sessions.add(s)
		publishing.Lock()
		leader.serveBy(s, config, true)
		publishing.Unlock()
		leader.promised(s, &fleetpb.Promise{UntilMicros: leader.absences.Ask("shop").GetPromise().GetUntilMicros()})
		return s
	}
	var coming sync.WaitGroup
	for part := range slices.Chunk(ids, n/atOnce) {
		coming.Go(func() {
			for round := range rounds {
				for _, id := range part {
					if s := come(id); round < rounds-1 {
						leader.leave(s, errSilent)
					}
				}
			}
		})
	}
	all := make(chan struct{})
	go func() {
		coming.Wait()
		close(all)
	}()
	for counting := true; counting; {
		select {
		case <-all:
			counting = false
		default:
		}
		if _, c := leader.count("shop"); c.holders[name] != n && c.holders[name] != 0 {
			t.Errorf("%d holders are counted, want %d", c.holders[name], n)
			break
		}
	}
	<-all
	if in, c := leader.count("shop"); len(in) != n || c.holders[name] != n {
		t.Errorf("at last %d of %d sidecars are there, and %d holders are counted", len(in), n, c.holders[name])
	}
}

// TestANumberThatMayNotBeSentIsSentLater: the promise of the sidecar is over, so it may be on the share that
// it has, and the number is still news when it promises again.
func TestANumberThatMayNotBeSentIsSentLater(t *testing.T) {
	now := limiter.Instant(1e9)
	tracker := absence.New(func() limiter.Instant { return now }, false, nil)
	id := pod("shop", "web-0")
	tracker.Await([]podauth.Identity{id, pod("shop", "web-1")})
	s := newSession(id, helloOf(id, "1"), func(error) {})
	s.back, s.serves = true, configOf(t, several(2, 0, 1)...)
	p0, p1 := types.NamespacedName{Namespace: "shop", Name: "p0"}, types.NamespacedName{Namespace: "shop", Name: "p1"}
	promise := func() {
		until := tracker.Ask("shop").GetPromise().GetUntilMicros()
		if !tracker.Promise(id, "1", s.shares(), 0, limiter.Instant(until)) {
			t.Fatal("a promise does not count")
		}
	}
	promise()
	now = now.Add(2 * absence.PromiseTime)
	c := &numbers{map[types.NamespacedName]int64{p0: 3, p1: 2}, true}
	for range 2 {
		if s.sendHolders(c, tracker); len(s.shares()) > 0 {
			t.Fatalf("it was sent %v after its promise", s.shares())
		}
	}
	promise()
	if s.sendHolders(c, tracker); s.shares()[p0] != 3 || s.shares()[p1] != 2 {
		t.Errorf("it was sent %v, want all that it was not sent before", s.shares())
	}
}

// TestOtherNumbersAreLookedAtWhole: a holder whose policies are the same is sent what changed of them.
func TestOtherNumbersAreLookedAtWhole(t *testing.T) {
	id := pod("shop", "web-0")
	s := newSession(id, helloOf(id, "1"), func(error) {})
	s.back, s.serves = true, configOf(t, several(1, 0, 1)...)
	name := types.NamespacedName{Namespace: "shop", Name: "p0"}
	tracker := absence.New(func() limiter.Instant { return 0 }, true, nil)
	for _, n := range []int64{1, 2, 5, 4} {
		if s.sendHolders(&numbers{map[types.NamespacedName]int64{name: n}, true}, tracker); s.shares()[name] != n {
			t.Errorf("it has %d holders, want %d", s.shares()[name], n)
		}
	}
}
