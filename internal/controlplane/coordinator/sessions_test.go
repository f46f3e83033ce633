package coordinator

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/weir-dev/weir/internal/controlplane/coordinator/podauth"
	"github.com/weir-dev/weir/internal/fleetpb"
	"github.com/weir-dev/weir/pkg/limiter"
)

// introduce opens a session with this hello.
func (l *leader) introduce(id podauth.Identity, change func(*fleetpb.Hello)) *sidecar {
	l.t.Helper()
	hello := helloOf(id, "nonce")
	change(hello)
	s := l.dial(tokenOf(id))
	s.send(&fleetpb.FromHolder{Message: &fleetpb.FromHolder_Hello{Hello: hello}})
	if m := s.recv(); m.GetWelcome() == nil {
		l.t.Fatalf("got %v, want a welcome", m)
	}
	return s
}

func TestVersionsAreThoseOfConnectedSidecars(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		registry := prometheus.NewRegistry()
		l := lead(t, &memoryTerms{}, publishing(limited("shop", 1, 10, limiter.Second)), func(c *Config) { c.Registerer = registry })
		var all []*sidecar
		for i, version := range []string{"v1.0.0", "v1.1.0", "v1.1.0"} {
			all = append(all, l.introduce(pod("shop", fmt.Sprintf("web-%d", i)), func(h *fleetpb.Hello) { h.Version = version }))
		}
		read := func(want map[string]float64) {
			t.Helper()
			if diff := cmp.Diff(want, byLabel(t, registry, "weir_sidecars")); diff != "" {
				t.Errorf("weir_sidecars (-want +got):\n%s", diff)
			}
		}
		read(map[string]float64{"v1.0.0": 1, "v1.1.0": 2})
		all[0].close()
		read(map[string]float64{"v1.1.0": 2})
		for _, s := range all[1:] {
			s.close()
		}
		l.end()
		read(map[string]float64{})
	})
}

func TestVersionsAreBounded(t *testing.T) {
	many, want := map[string]int{"v1.0.0": 1}, map[string]int{"other": 2}
	for i := range maxVersions {
		many[fmt.Sprintf("v2.%d.0", i)], want[fmt.Sprintf("v2.%d.0", i)] = 5, 5
	}
	many["v1.9.0"] = 1
	for name, tc := range map[string]struct{ counts, want map[string]int }{
		"none":                   {nil, map[string]int{}},
		"the rarest are added":   {many, want},
		"what builds are called": {map[string]int{"(devel)": 1, "v1.2.3+dirty": 2, "9966001-dirty": 3}, map[string]int{"(devel)": 1, "v1.2.3+dirty": 2, "9966001-dirty": 3}},
		"what no build is called": {
			map[string]int{"": 1, "v1\n": 2, "a b": 4, "\xff": 8, strings.Repeat("v", 65): 16, "other": 32, "v1": 64},
			map[string]int{"v1": 64, "other": 63},
		},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, mostFrequent(tc.counts)); diff != "" {
				t.Errorf("mostFrequent (-want +got):\n%s", diff)
			}
		})
	}
}

func TestASessionSaysWhatTheSidecarSaidOfItself(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := lead(t, &memoryTerms{}, publishing(limited("shop", 1, 10, limiter.Second)))
		defer l.end()
		s := l.introduce(pod("shop", "web-0"), func(h *fleetpb.Hello) {
			h.Version, h.Capture, h.Mode = "v1.2.3", fleetpb.Capture_CAPTURE_NONE, fleetpb.Mode_MODE_BYPASS
		})
		defer s.close()
		s.config()
		got := l.Observe("shop", "checkout").Sessions
		if len(got) != 1 || got[0].Version != "v1.2.3" || got[0].Capture != fleetpb.Capture_CAPTURE_NONE || got[0].Mode != fleetpb.Mode_MODE_BYPASS {
			t.Errorf("sessions = %+v", got)
		}
	})
}

// TestLargeFleetsSpreadTheirWaits by their number, when they connect and when the replicas change.
func TestLargeFleetsSpreadTheirWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var there atomic.Pointer[[]string]
		there.Store(&[]string{"10.0.0.2:1"})
		const n = 510
		l := lead(t, &memoryTerms{}, publishing(), func(c *Config) {
			c.Replicas = func(context.Context) ([]string, error) { return *there.Load(), nil }
		})
		defer l.end()
		var last *sidecar
		for i := range n {
			last = l.connect(pod("shop", fmt.Sprint("web-", i)), "1")
			defer last.close()
		}
		next := func() time.Duration {
			for {
				if r := last.recv().GetReplicas(); r != nil {
					return time.Duration(r.GetSpreadMillis()) * time.Millisecond
				}
			}
		}
		if got := next(); got != n*waitTime {
			t.Errorf("the last of %d sidecars to connect spreads over %s, want %s", n, got, n*waitTime)
		}
		there.Store(&[]string{"10.0.0.3:1"})
		if got := next(); got != n*waitTime {
			t.Errorf("%d sidecars spread over %s, want %s", n, got, n*waitTime)
		}
	})
	synctest.Test(t, func(t *testing.T) { // which has not come back yet
		l := lead(t, &memoryTerms{}, publishing(), func(c *Config) {
			c.Replicas = func(context.Context) ([]string, error) { return []string{"10.0.0.2:1"}, nil }
			c.Pods = func(context.Context, string) (all []podauth.Identity, err error) {
				for i := range 700 {
					all = append(all, pod("shop", fmt.Sprint("web-", i)))
				}
				return all, nil
			}
		})
		defer l.end()
		s := l.connect(pod("shop", "web-0"), "1")
		defer s.close()
		for m := s.recv(); ; m = s.recv() {
			if r := m.GetReplicas(); r != nil {
				if got := time.Duration(r.GetSpreadMillis()) * time.Millisecond; got != 700*waitTime {
					t.Errorf("the first of 700 sidecars to come back spreads over %s, want %s", got, 700*waitTime)
				}
				break
			}
		}
	})
	if got := spreadOf(1e6); got != longestSpread {
		t.Errorf("a million sidecars spread over %s", got)
	}
}

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
			if got := m.GetReplicas().GetSpreadMillis(); got != leastSpread.Milliseconds() {
				t.Errorf("two sidecars spread over %d ms", got)
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

// TestASessionIsNewOnce, until it is taken, replaced or has ended.
func TestASessionIsNewOnce(t *testing.T) {
	ss := newSessions()
	add := func(namespace, name, nonce string) *session {
		s := newSession(pod(namespace, name), &fleetpb.Hello{BootNonce: nonce}, func(error) {})
		ss.add(s)
		return s
	}
	check := func(namespace string, want ...*session) {
		t.Helper()
		if got := ss.takeNew(namespace); !slices.Equal(got, want) {
			t.Errorf("%d sessions of %s are new, want %d", len(got), namespace, len(want))
		}
	}
	add("shop", "web-0", "1")
	second, gone := add("shop", "web-1", "1"), add("shop", "web-2", "1")
	other := add("warehouse", "web-3", "1")
	ss.remove(gone)
	successor := add("shop", "web-0", "2")
	check("shop", second, successor)
	check("shop")
	check("warehouse", other)
	if len(ss.fresh) != 0 {
		t.Errorf("it remembers %v", ss.fresh)
	}
}
