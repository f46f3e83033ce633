package coordinator

import (
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weir-dev/weir/internal/controlplane/coordinator/podauth"
	"github.com/weir-dev/weir/internal/controlplane/translate"
	"github.com/weir-dev/weir/internal/fleetpb"
	"github.com/weir-dev/weir/pkg/limiter"
	"github.com/weir-dev/weir/pkg/policy"
)

// errPartial is what the resolver says while shop/second does not translate.
var errPartial = &translate.PartialError{}

// secondOf returns another policy beside that of limited.
func secondOf(p policy.Policy) policy.Policy {
	p.Name = "second"
	return p
}

func nextGeneration(p policy.Policy) policy.Policy {
	p.Generation++
	return p
}

// connectWith opens a session of a holder that enforces what has the version.
func (l *leader) connectWith(id podauth.Identity, nonce, version string) *sidecar {
	l.t.Helper()
	s := l.dial(tokenOf(id))
	hello := helloOf(id, nonce)
	hello.ConfigVersion = version
	s.send(&fleetpb.FromHolder{Message: &fleetpb.FromHolder_Hello{Hello: hello}})
	if m := s.recv(); m.GetWelcome() == nil {
		l.t.Fatalf("got %v, want a welcome", m)
	}
	synctest.Wait()
	return s
}

// requireSent compares the policies, and their generations, that the pod was sent last.
func (l *leader) requireSent(id podauth.Identity, want ...policy.Policy) {
	l.t.Helper()
	synctest.Wait()
	s := l.present.Load().sessions.of(id.PodUID)
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case !s.sent && want == nil:
	case !s.sent:
		l.t.Errorf("pod %s was sent nothing, want %d policies", id.Pod, len(want))
	case !slices.EqualFunc(s.serves.snapshot.Policies, want, func(a, b policy.Policy) bool { return a.Name == b.Name && a.Generation == b.Generation }):
		l.t.Errorf("pod %s was sent %+v, want %+v", id.Pod, s.serves.snapshot.Policies, want)
	}
}

// requireAnswers checks that the policy's counter is served, which it is only for a
// holder that the controller knows to enforce the policy.
func requireAnswers(t *testing.T, s *sidecar, p policy.Policy) {
	t.Helper()
	time.Sleep(time.Second) // all is known of the window that begins
	if reply := s.lease(p, p.Limits[0]); reply.GetGranted() != 1 {
		t.Errorf("reply = %v, want one unit", reply)
	}
}

// leadWithout leads a term in which no more than part can be put in force.
func leadWithout(t *testing.T, part ...policy.Policy) (*leader, *policies) {
	t.Helper()
	resolver := publishing()
	resolver.lack(errPartial, part...)
	return lead(t, &memoryTerms{}, resolver), resolver
}

// TestABrokenPolicyKeepsNoOtherFromANewPod, claims nothing of itself, and comes when it
// is repaired.
func TestABrokenPolicyKeepsNoOtherFromANewPod(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		good := limited("shop", 1, 10, limiter.Second)
		l, resolver := leadWithout(t, good)
		defer l.end()
		id := pod("shop", "web-0")
		s := l.connect(id, "1")
		defer s.close()
		if got := s.config(); len(got.Policies) != 1 || got.Policies[0].Name != good.Name {
			t.Errorf("configuration = %+v, want the policy that is not broken", got)
		}
		requireAnswers(t, s, good)
		if got := l.observed(); got.Generation != 1 {
			t.Errorf("session = %+v, want generation 1 of the good policy in force", got)
		}
		if got := l.Observe("shop", "second"); got.Holders != 0 || len(got.Sessions) != 0 {
			t.Errorf("of the broken policy it is said that %+v enforce it", got)
		}
		resolver.lack(nil, good, secondOf(good))
		l.Refresh("shop")
		l.requireSent(id, good, secondOf(good))
		if got := l.Observe("shop", "second"); got.Holders != 1 || got.Sessions[0].Generation != 0 {
			t.Errorf("of the repaired policy it is said %+v before the holder says that it enforces it", got)
		}
	})
}

// TestAPartAndTheRestComeUnasked: what the resolver could not answer yet is asked again.
func TestAPartAndTheRestComeUnasked(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		good := limited("shop", 1, 10, limiter.Second)
		l := lead(t, &memoryTerms{}, &policies{})
		defer l.end()
		id := pod("shop", "web-0")
		s := l.connect(id, "1")
		defer s.close()
		l.requireSent(id)
		l.policies.set(true, good)
		l.policies.lack(errPartial, good)
		if got := s.config(); len(got.Policies) != 1 {
			t.Errorf("configuration = %+v, want the policy that is not broken", got)
		}
		l.policies.lack(nil, good, secondOf(good)) // repaired, and nobody says so
		time.Sleep(2 * time.Second)
		l.requireSent(id, good, secondOf(good))
	})
}

// TestAPartTakesNothingFromARunningPod, whatever else of its policies changes, and is
// sent where it takes nothing.
func TestAPartTakesNothingFromARunningPod(t *testing.T) {
	good := limited("shop", 1, 10, limiter.Second)
	changed := nextGeneration(good)
	for name, tc := range map[string]struct {
		before, part, want []policy.Policy
	}{
		"the broken one is in force":             {[]policy.Policy{good, secondOf(good)}, []policy.Policy{good}, []policy.Policy{good, secondOf(good)}},
		"it is in force and another one changes": {[]policy.Policy{good, secondOf(good)}, []policy.Policy{changed}, []policy.Policy{good, secondOf(good)}},
		"it is the only one, and in force":       {[]policy.Policy{secondOf(good)}, nil, []policy.Policy{secondOf(good)}},
		"it is new and another one changes":      {[]policy.Policy{good}, []policy.Policy{changed}, []policy.Policy{changed}},
		"there was none before":                  {nil, []policy.Policy{good}, []policy.Policy{good}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				resolver := publishing(tc.before...)
				l := lead(t, &memoryTerms{}, resolver)
				defer l.end()
				id := pod("shop", "web-0")
				s := l.connect(id, "1")
				defer s.close()
				s.config()
				resolver.lack(errPartial, tc.part...)
				l.Refresh("shop")
				l.requireSent(id, tc.want...)
			})
		})
	}
}

// TestAPartTakesNoPool from a pod whose pool is the one that is broken.
func TestAPartTakesNoPool(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		good := limited("shop", 1, 10, limiter.Second)
		resolver := publishing(good)
		resolver.share(pooled("shop", 1, 10))
		l := lead(t, &memoryTerms{}, resolver)
		defer l.end()
		id := pod("shop", "web-0")
		s := l.connect(id, "1")
		defer s.close()
		s.config()
		resolver.lack(errPartial, nextGeneration(good))
		resolver.share()
		l.Refresh("shop")
		l.requireSent(id, good)
	})
}

// TestWhatAHolderOfferedDecidesOnAPart: a holder that comes to a new leader may enforce
// more than the part.
func TestWhatAHolderOfferedDecidesOnAPart(t *testing.T) {
	good := limited("shop", 1, 10, limiter.Second)
	withSecret := good
	withSecret.Store.Type, withSecret.Store.Address, withSecret.Store.Secret = policy.RedisStore, "redis:6379", "shop/redis"
	current := withSecret
	current.Store.SecretVersion = "7"
	snapshot := func(all ...policy.Policy) string { return versionOf(policy.Snapshot{Cluster: "test", Policies: all}) }
	for name, tc := range map[string]struct {
		offered string
		part    policy.Policy
		want    []policy.Policy
	}{
		"nothing":                       {"", good, []policy.Policy{good}},
		"the part":                      {snapshot(good), good, []policy.Policy{good}},
		"the part before credentials":   {snapshot(withSecret), current, []policy.Policy{current}},
		"the part with credentials":     {snapshot(current), current, []policy.Policy{current}},
		"the part and the broken one":   {snapshot(good, secondOf(good)), good, nil},
		"what selects a pod of nothing": {snapshot(), good, []policy.Policy{good}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				resolver := publishing()
				resolver.keeps(func(policy.Store) (map[string][]byte, error) { return map[string][]byte{"password": []byte("x")}, nil })
				resolver.lack(errPartial, tc.part)
				l := lead(t, &memoryTerms{}, resolver)
				defer l.end()
				id := pod("shop", "web-0")
				s := l.connectWith(id, "1", tc.offered)
				defer s.close()
				l.requireSent(id, tc.want...)
				if got := l.Observe("shop", "second"); len(got.Sessions) != 0 {
					t.Errorf("of the broken policy it is said that %+v enforce it", got.Sessions)
				}
			})
		})
	}
}
