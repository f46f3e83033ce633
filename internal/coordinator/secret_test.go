package coordinator

import (
	"bytes"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weir-dev/weir/internal/fleetpb"
	"github.com/weir-dev/weir/pkg/limiter"
	"github.com/weir-dev/weir/pkg/policy"
)

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
