package coordinator

import (
	"context"
	"errors"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// TestSidecarsAreSentWhereToWait: when they connect, and when that changes.
func TestSidecarsAreSentWhereToWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var there atomic.Pointer[[]string] // nil: that cannot be found out
		there.Store(&[]string{"10.0.0.3:1", "10.0.0.2:1"})
		l := lead(t, &memoryTerms{}, publishing(), func(c *Config) {
			c.Replicas = func(context.Context) ([]string, error) {
				if a := there.Load(); a != nil {
					return *a, nil
				}
				return nil, errors.New("the cache is away")
			}
		})
		defer l.end()
		expect := func(s *sidecar, want ...string) {
			t.Helper()
			m := s.recv()
			for m.GetReplicas() == nil {
				m = s.recv()
			}
			if got := m.GetReplicas().GetAddresses(); !slices.Equal(got, want) {
				t.Errorf("sent the replicas %q, want %q", got, want)
			}
		}
		a := l.connect(pod("shop", "web-0"), "1")
		defer a.close()
		expect(a, "10.0.0.2:1", "10.0.0.3:1")
		there.Store(nil)
		time.Sleep(2 * replicasInterval)
		b := l.connect(pod("shop", "web-1"), "1")
		defer b.close()
		expect(b, "10.0.0.2:1", "10.0.0.3:1")
		there.Store(&[]string{"10.0.0.4:1"})
		time.Sleep(replicasInterval)
		expect(a, "10.0.0.4:1") // and nothing before: what did not change is not sent
		expect(b, "10.0.0.4:1")
		there.Store(&[]string{})
		time.Sleep(replicasInterval)
		expect(a)
	})
}
