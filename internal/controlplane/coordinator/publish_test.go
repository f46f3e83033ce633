package coordinator

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weir-dev/weir/internal/fleetpb"
	"github.com/weir-dev/weir/pkg/limiter"
	"github.com/weir-dev/weir/pkg/policy"
	"github.com/weir-dev/weir/pkg/store"
)

func TestNothingIsSentBeforeTheResolverIsSynced(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := limited("shop", 7, 10, limiter.Second)
		l := lead(t, &memoryTerms{}, &policies{})
		defer l.end()
		s := l.connect(pod("shop", "web-0"), "1")
		defer s.close()
		for range 30 {
			time.Sleep(time.Second)
			s.send(&fleetpb.FromHolder{Message: &fleetpb.FromHolder_Acknowledge{Acknowledge: &fleetpb.Acknowledge{}}})
		}
		l.policies.set(true, p)
		if got := s.config(); len(got.Policies) != 1 || got.Policies[0].Generation != 7 {
			t.Errorf("first configuration = %+v, want the policy", got)
		}
	})
}

func TestRefreshSendsWhatChanged(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		first, second := limited("shop", 1, 10, limiter.Second), limited("shop", 2, 20, limiter.Second)
		l := lead(t, &memoryTerms{}, publishing(first))
		defer l.end()
		s := l.connect(pod("shop", "web-0"), "1")
		defer s.close()
		s.config()
		l.Refresh("shop") // nothing changed: nothing is sent
		synctest.Wait()
		l.policies.set(true, second)
		l.Refresh("shop")
		if got := s.config(); got.Policies[0].Generation != 2 {
			t.Errorf("configuration = %+v, want generation 2", got)
		}
		l.policies.set(true)
		l.Refresh("shop")
		if got := s.config(); len(got.Policies) != 0 {
			t.Errorf("configuration = %+v, want no policy", got)
		}
	})
}

// TestANamespaceIsReadOnceForAllItsSidecars: an edit costs work for the policies, not
// for the pods.
func TestANamespaceIsReadOnceForAllItsSidecars(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := lead(t, &memoryTerms{}, publishing(limited("shop", 1, 10, limiter.Second)))
		defer l.end()
		var all []*sidecar
		for i := range 20 {
			s := l.connect(pod("shop", fmt.Sprintf("web-%d", i)), "1")
			defer s.close()
			s.config()
			all = append(all, s)
		}
		before := l.policies.reads()
		l.policies.set(true, limited("shop", 2, 20, limiter.Second))
		l.Refresh("shop")
		for _, s := range all {
			if got := s.config(); got.Policies[0].Generation != 2 {
				t.Errorf("configuration = %+v, want generation 2", got)
			}
		}
		if n := l.policies.reads() - before; n != 1 {
			t.Errorf("the namespace was read %d times", n)
		}
	})
}

// TestASidecarThatConnectsIsServedAlone: it costs no work for the others.
func TestASidecarThatConnectsIsServedAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := newCaller(t, &memoryTerms{}, newShared(1), limited("shop", 1, 10, limiter.Second))
		defer k.term.tasks.ShutDown()
		if err := k.term.enter(k.s); err != nil {
			t.Fatal(err)
		}
		if got, _ := k.term.tasks.Get(); got != (task{namespace: "shop", fresh: true}) {
			t.Errorf("task %+v, want that of those that are new", got)
		}
		if got := k.term.sessions.takeNew("shop"); len(got) != 1 || got[0] != k.s {
			t.Errorf("%d sessions are new, want this one", len(got))
		}
	})
}

// TestSidecarsThatComeTogetherAreServedByOneRead: all that came while the first was served.
func TestSidecarsThatComeTogetherAreServedByOneRead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := publishing(limited("shop", 1, 10, limiter.Second))
		p.takes = time.Second
		l := lead(t, &memoryTerms{}, p)
		defer l.end()
		var all []*sidecar
		for i := range 20 {
			s := l.connect(pod("shop", fmt.Sprintf("web-%d", i)), "1")
			defer s.close()
			all = append(all, s)
		}
		for _, s := range all {
			s.config()
		}
		if n := l.policies.reads(); n != 2 {
			t.Errorf("the namespace was read %d times, want once for the first and once for the others", n)
		}
	})
}

func TestProgressIsWhatSidecarsAcknowledge(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := lead(t, &memoryTerms{}, publishing(limited("shop", 1, 10, limiter.Second)))
		defer l.end()
		s := l.connect(pod("shop", "web-0"), "1")
		defer s.close()
		config := s.recv().GetConfig()
		if got := l.observed(); got.Generation != 0 {
			t.Errorf("before the acknowledgement: %+v", got)
		}
		s.acknowledge(config.GetVersion(), "")
		synctest.Wait()
		if got := l.observed(); got.Generation != 1 || got.Error != "" {
			t.Errorf("after the acknowledgement: %+v", got)
		}
		l.policies.set(true, limited("shop", 2, 20, limiter.Second))
		l.Refresh("shop")
		config = s.recv().GetConfig()
		s.acknowledge(config.GetVersion(), "no such thing")
		synctest.Wait()
		if got := l.observed(); got.Generation != 1 || got.Error != "no such thing" {
			t.Errorf("after the refusal: %+v", got)
		}
		s.acknowledge("sha256:old", "")
		synctest.Wait()
		if got := l.observed(); got.Error == "" {
			t.Errorf("after an acknowledgement of something else: %+v", got)
		}
	})
}

// observed returns the only session of shop/checkout.
func (l *leader) observed() PolicySession {
	l.t.Helper()
	got := l.Observe("shop", "checkout")
	if len(got.Sessions) != 1 {
		l.t.Fatalf("observation = %+v, want one session", got)
	}
	return got.Sessions[0]
}

func TestASidecarIsNotSentWhatItEnforces(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := limited("shop", 1, 10, limiter.Second)
		l := lead(t, &memoryTerms{}, publishing(p))
		defer l.end()
		_, version, err := policy.Encode(policy.Snapshot{Cluster: "test", Policies: []policy.Policy{p}})
		if err != nil {
			t.Fatal(err)
		}
		id := pod("shop", "web-0")
		s := l.dial(tokenOf(id))
		defer s.close()
		hello := helloOf(id, "1")
		hello.ConfigVersion = version
		s.send(&fleetpb.FromHolder{Message: &fleetpb.FromHolder_Hello{Hello: hello}})
		s.recv()
		synctest.Wait()
		if got := l.observed(); got.Generation != 1 {
			t.Errorf("session = %+v, want generation 1 in force", got)
		}
		time.Sleep(time.Second)
		if reply := s.lease(p, p.Limits[0]); reply.GetGranted() != 1 { // the first message after the welcome
			t.Errorf("reply = %v, want one unit", reply)
		}
	})
}

func TestPodsWithTheSamePoliciesShareOneEncoding(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := lead(t, &memoryTerms{}, publishing(limited("shop", 1, 10, limiter.Second)))
		defer l.end()
		for i := range 3 {
			s := l.connect(pod("shop", fmt.Sprint("web-", i)), "1")
			defer s.close()
			s.config()
		}
		configs := map[*config]bool{}
		for _, s := range l.present.Load().sessions.in("shop") {
			configs[s.serves] = true
		}
		synctest.Wait()
		if len(configs) != 1 || l.present.Load().configs["shop"] == nil {
			t.Errorf("%d encodings, want 1", len(configs))
		}
	})
}

// TestNoNumberOfHoldersFallsWhileAPodIsThere: its sidecar may be on its local share.
func TestNoNumberOfHoldersFallsWhileAPodIsThere(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, fleet := limited("shop", 1, 10, limiter.Second), podsOf(pod("shop", "web-0"), pod("shop", "web-1"))
		l := lead(t, &memoryTerms{}, publishing(p), fleet.watched)
		defer l.end()
		first, second := l.comeBack(pod("shop", "web-0"), p, 2), l.comeBack(pod("shop", "web-1"), p, 2)
		defer first.close()
		time.Sleep(time.Second)
		requireTold(t, l, p, 2, "web-0", "web-1")
		second.close()
		time.Sleep(3 * podsInterval)
		requireTold(t, l, p, 2, "web-0")
		first.report()
		third := l.comeBack(pod("shop", "web-2"), p, 0)
		defer third.close()
		time.Sleep(time.Second)
		requireTold(t, l, p, 4, "web-0", "web-2") // half of the limit is theirs
		second = l.comeBack(pod("shop", "web-1"), p, 2)
		time.Sleep(time.Second)
		requireTold(t, l, p, 3, "web-0", "web-1", "web-2")
		second.close()
		first.report()
		fleet.gone("web-1")
		time.Sleep(podsInterval + time.Second)
		requireTold(t, l, p, 2, "web-0", "web-2")
		third.send(&fleetpb.FromHolder{Message: &fleetpb.FromHolder_Leave{Leave: new(fleetpb.Leave)}})
		time.Sleep(time.Second)
		requireTold(t, l, p, 1, "web-0")
	})
}

// changes returns which policies were named until nothing goes on any more.
func (l *leader) changes() map[string]int {
	names := map[string]int{}
	for {
		select {
		case name := <-l.Changed():
			names[name.Name]++
		case <-time.After(gathered):
			return names
		}
	}
}

func TestChangedNamesThePolicyOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := lead(t, &memoryTerms{}, publishing(limited("shop", 1, 10, limiter.Second)))
		defer l.end()
		for i := range 5 {
			s := l.connect(pod("shop", fmt.Sprint("web-", i)), "1")
			defer s.close()
			s.config()
		}
		// One was on its way, the others waited together.
		if names := l.changes(); len(names) != 1 || names["checkout"] == 0 || names["checkout"] > 2 {
			t.Errorf("named are %v, want checkout once or twice", names)
		}
	})
}

// TestAnEditNamesNoOtherPolicy holds that an acknowledgement costs work for the policies
// that are new in it; a refusal concerns all.
func TestAnEditNamesNoOtherPolicy(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		edited, other := limited("shop", 1, 10, limiter.Second), limited("shop", 1, 10, limiter.Second)
		other.Name = "other"
		l := lead(t, &memoryTerms{}, publishing(edited, other))
		defer l.end()
		s := l.connect(pod("shop", "web-0"), "1")
		defer s.close()
		sent := func() string { // skips counts of holders
			for {
				if c := s.recv().GetConfig(); c != nil {
					return c.GetVersion()
				}
			}
		}
		s.acknowledge(sent(), "")
		both, one := []string{"checkout", "other"}, []string{"checkout"}
		for _, step := range []struct {
			refusal     string
			sent, acked []string
		}{
			{"", one, one},
			{"no such thing", one, both},
			{"", both, one},
		} {
			l.changes()
			edited.Generation++
			l.policies.set(true, edited, other)
			l.Refresh("shop")
			version := sent()
			if names := slices.Sorted(maps.Keys(l.changes())); !slices.Equal(names, step.sent) {
				t.Errorf("sending generation %d named %v, want %v", edited.Generation, names, step.sent)
			}
			s.acknowledge(version, step.refusal)
			if names := slices.Sorted(maps.Keys(l.changes())); !slices.Equal(names, step.acked) {
				t.Errorf("an acknowledgement with error %q of generation %d named %v, want %v", step.refusal, edited.Generation, names, step.acked)
			}
		}
	})
}

// withSecret returns a policy whose store wants credentials, in that version.
func withSecret(name, version string) policy.Policy {
	p := limited("shop", 1, 10, limiter.Second)
	p.Name = name
	p.Store = policy.Store{Type: policy.RedisStore, Address: "redis:6379", Secret: "shop/db", SecretVersion: version}
	return p
}

// passwords holds one for every version.
func passwords(of policy.Store) (map[string][]byte, error) {
	return map[string][]byte{"password": []byte("s3cr3t-" + of.SecretVersion), "of-another": []byte("s3cr3t")}, nil
}

// receiveConfig returns the next configuration as it was sent.
func (s *sidecar) receiveConfig() *fleetpb.Config {
	s.t.Helper()
	for {
		m := s.recv()
		if c := m.GetConfig(); c != nil {
			return c
		}
		if m.GetHolders() == nil {
			s.t.Fatalf("got %v, want a configuration", m)
		}
	}
}

// TestCredentialsTravelBesideTheSnapshot and to every session, also one whose
// holder enforces the snapshot already: it may have lost them or never had them.
func TestCredentialsTravelBesideTheSnapshot(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		all := []policy.Policy{withSecret("a", "7"), withSecret("b", "7"), limited("shop", 1, 10, limiter.Second)}
		policies := publishing(all...)
		policies.keeps(passwords)
		l := lead(t, &memoryTerms{}, policies)
		defer l.end()
		_, version, err := policy.Encode(policy.Snapshot{Cluster: "test", Policies: all})
		if err != nil {
			t.Fatal(err)
		}
		for name, offered := range map[string]string{"a holder that is new": "", "one that enforces it already": version} {
			id := pod("shop", "web-0")
			s := l.dial(tokenOf(id))
			hello := helloOf(id, name)
			hello.ConfigVersion = offered
			s.send(&fleetpb.FromHolder{Message: &fleetpb.FromHolder_Hello{Hello: hello}})
			s.recv()
			c := s.receiveConfig()
			if got := c.GetSecrets(); len(got) != 1 || got[0].GetName() != "shop/db" || got[0].GetVersion() != "7" ||
				string(got[0].GetData()["password"]) != "s3cr3t-7" {
				t.Errorf("%s gets secrets %v, want shop/db once", name, got)
			} else if len(got[0].GetData()) != 1 {
				t.Errorf("%s gets what no store reads: %v", name, got)
			}
			if bytes.Contains(c.GetSnapshot(), []byte("s3cr3t")) {
				t.Errorf("%s: the snapshot, which pods carry in their spec, holds a password", name)
			}
			synctest.Wait()
			if enforced := l.observed().Enforced; (enforced != nil) != (offered != "") {
				t.Errorf("%s: before it acknowledged it enforces %v", name, enforced)
			}
			s.close()
		}
	})
}

func TestRotatedCredentialsAreSent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		policies := publishing(withSecret("a", "7"))
		policies.keeps(passwords)
		l := lead(t, &memoryTerms{}, policies)
		defer l.end()
		s := l.connect(pod("shop", "web-0"), "1")
		defer s.close()
		s.config()
		l.policies.set(true, withSecret("a", "8"))
		l.Refresh("shop")
		if got := s.receiveConfig().GetSecrets(); len(got) != 1 || string(got[0].GetData()["password"]) != "s3cr3t-8" {
			t.Errorf("got secrets %v, want version 8", got)
		}
	})
}

// TestNothingIsSentWithoutItsCredentials: they were there when the snapshot was
// resolved, so they are asked for again.
func TestNothingIsSentWithoutItsCredentials(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		policies := publishing(withSecret("a", "7"))
		policies.keeps(func(policy.Store) (map[string][]byte, error) { return nil, errors.New("forbidden") })
		l := lead(t, &memoryTerms{}, policies)
		defer l.end()
		s := l.connect(pod("shop", "web-0"), "1")
		defer s.close()
		time.Sleep(time.Second)
		if got := l.Observe("shop", "a"); len(got.Sessions) != 0 {
			t.Errorf("sent to %+v", got.Sessions)
		}
		policies.keeps(passwords)
		if got := s.receiveConfig().GetSecrets(); len(got) != 1 {
			t.Errorf("got secrets %v, want one", got)
		}
	})
}

// A holder is sent what is known of the clocks of its own stores before it is sent to ask
// them, as soon as something is known, and once.
func TestAHolderHearsWhatClocksHadShown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		here, there := onRedis(day, false), onRedis(day, false)
		there.Namespace, there.Store.Address = "other", "theirs:6379"
		late := onRedis(day, false)
		late.Name, late.Store.Address = "late", "late:6379"
		var known atomic.Int64
		l := lead(t, &memoryTerms{}, publishing(here, late, there), func(c *Config) {
			c.Reached = func(of policy.Store) store.Reached {
				if of.Address == late.Store.Address {
					return store.Reached{Now: limiter.Instant(known.Load()), Doubtful: 7}
				}
				return store.Reached{Now: 5e12}
			}
		})
		s := l.connect(pod("shop", "web-0"), "1")
		wants := func(clocks map[string]int64) {
			t.Helper()
			got := map[string]int64{}
			for _, c := range s.recv().GetClocks().GetClocks() {
				got[c.GetServer()] = c.GetNowMicros()
			}
			if !maps.Equal(got, clocks) {
				t.Errorf("sent %v, want %v", got, clocks)
			}
		}
		wants(map[string]int64{"Redis|redis:6379|": 5e12})
		s.config()
		s.report(&fleetpb.LimitReport{})
		known.Store(6e12)
		s.report(&fleetpb.LimitReport{})
		for {
			if m := s.recv(); m.GetClocks() != nil {
				if c := m.GetClocks().GetClocks(); len(c) != 1 || c[0].GetServer() != late.Store.Server() || c[0].GetNowMicros() != 6e12 || c[0].GetDoubtfulMicros() != 7 {
					t.Errorf("sent %v", c)
				}
				break
			}
		}
		l.end()
		s.close()
	})
}
