package enforce_test

import (
	"fmt"
	"testing"

	"github.com/weir-dev/weir/internal/sidecar/enforce"
	"github.com/weir-dev/weir/pkg/policy"
	"github.com/weir-dev/weir/pkg/policy/revision"
	"github.com/weir-dev/weir/pkg/twotier"
)

// A touched engine counts how often it is configured.
type touched struct {
	engine
	scope string
	times map[string]int
}

func (e *touched) Reconfigure(twotier.Config)         { e.times[e.scope]++ }
func (e *touched) Swap(twotier.Config, twotier.Store) { e.times[e.scope]++ }

// TestAnEditTouchesNoOtherEngine: those of policies that did not change are not configured again, in the
// mode Shadow either.
func TestAnEditTouchesNoOtherEngine(t *testing.T) {
	for _, mode := range []enforce.Mode{enforce.Enforce, enforce.Shadow} {
		t.Run(string(mode), func(t *testing.T) {
			times := map[string]int{}
			e := newEnforcer(t, newStore(frozen), func(c *enforce.Config) {
				c.Mode = mode
				c.NewLimiter = func(cfg twotier.Config, _ twotier.Store) (enforce.Limiter, error) {
					times[cfg.Scope.Policy]++
					return &touched{engine: engine{closed: make(chan struct{})}, scope: cfg.Scope.Policy, times: times}, nil
				}
			})
			held := new(revision.Held)
			for i, s := range []policy.Snapshot{manyOf(3, 1, 1), manyOf(3, 1, 2), manyOf(3, 1, 3)} {
				held = enforceWhole(t, e, held, s)
				want := map[string]int{"policy-000": 1, "policy-001": i + 1, "policy-002": 1}
				if got := fmt.Sprint(times); got != fmt.Sprint(want) {
					t.Errorf("after %d edits engines were configured %s times, want %v", i, got, want)
				}
			}
			if all := e.Limits(); len(all) != 3 {
				t.Errorf("%d limits are in force", len(all))
			}
		})
	}
}

// TestAnEditKeepsWhatItDoesNotChange: credits, counts and refusals of other policies.
func TestAnEditKeepsWhatItDoesNotChange(t *testing.T) {
	e := newEnforcer(t, newStore(frozen))
	held := enforceWhole(t, e, new(revision.Held), manyOf(3, 1, 1))
	if got := admit(t, e, 30, "/policy-000"); got != 10 {
		t.Fatalf("admitted %d, want 10", got)
	}
	held = enforceWhole(t, e, held, manyOf(3, 1, 5))
	if got := admit(t, e, 30, "/policy-000"); got != 0 {
		t.Errorf("admitted %d more of a limit that did not change", got)
	}
	if got := admit(t, e, 30, "/policy-001"); got != 14 {
		t.Errorf("admitted %d by the edited limit, want 14", got)
	}
	enforceWhole(t, e, held, policy.Snapshot{Cluster: "test", Policies: manyOf(3, 1, 5).Policies[:2]})
	if got := admit(t, e, 30, "/policy-002"); got != 30 {
		t.Errorf("admitted %d of 30 by a policy that is gone", got)
	}
}

// manyOf returns n policies. The one of that number has that generation, and 9 + generation an hour.
func manyOf(n, number int, generation int64) policy.Snapshot {
	s := policy.Snapshot{Cluster: "test"}
	for i := range n {
		p := policyOf(limitOf("all", 10))
		if p.Name = fmt.Sprintf("policy-%03d", i); i == number {
			p.Generation = generation
			p.Limits[0].Rates[0].Limit = 9 + generation
		}
		under("/" + p.Name)(&p.Limits[0])
		s.Policies = append(s.Policies, p)
	}
	return s
}

// enforceWhole enforces a snapshot, built on the version that is held.
func enforceWhole(tb testing.TB, e *enforce.Enforcer, held *revision.Held, s policy.Snapshot) *revision.Held {
	tb.Helper()
	data, version, err := policy.Encode(s)
	if err != nil {
		tb.Fatal(err)
	}
	next, err := held.Whole(version, data)
	if err != nil {
		tb.Fatal(err)
	}
	if err := e.Apply(next.Set, next.Version); err != nil {
		tb.Fatal(err)
	}
	return next
}

// BenchmarkEdit measures the edit of one of a hundred policies in a sidecar: what is sent as the whole and
// as an edit, to be decoded, checked, compiled and put in force. The first is a whole that has nothing in
// common with what is in force.
func BenchmarkEdit(b *testing.B) {
	const policies = 100
	type version struct {
		name    string
		data    []byte
		content *revision.Content
	}
	var versions [2]version
	for i := range versions {
		data, name, err := policy.Encode(manyOf(policies, 7, int64(i+1)))
		if err != nil {
			b.Fatal(err)
		}
		content, err := revision.ContentOf(data)
		if err != nil {
			b.Fatal(err)
		}
		versions[i] = version{name, data, content}
	}
	var edits [2]revision.Edit // to each of them
	for i := range edits {
		var err error
		if edits[i], err = revision.Between(versions[1-i].content, versions[i].content); err != nil {
			b.Fatal(err)
		}
		edits[i].Base, edits[i].Version = versions[1-i].name, versions[i].name
	}
	for name, next := range map[string]func(held *revision.Held, i int) (*revision.Held, error){
		"first": func(_ *revision.Held, i int) (*revision.Held, error) {
			return new(revision.Held).Whole(versions[i].name, versions[i].data)
		},
		"whole": func(held *revision.Held, i int) (*revision.Held, error) {
			return held.Whole(versions[i].name, versions[i].data)
		},
		"edit": func(held *revision.Held, i int) (*revision.Held, error) { return held.Edited(edits[i]) },
	} {
		b.Run(name, func(b *testing.B) {
			e := newEnforcer(b, newStore(frozen))
			held := enforceWhole(b, e, new(revision.Held), manyOf(policies, 7, 1))
			b.ReportAllocs()
			b.ResetTimer()
			for n := range b.N {
				made, err := next(held, (n+1)%2)
				if err != nil {
					b.Fatal(err)
				}
				if err := e.Apply(made.Set, made.Version); err != nil {
					b.Fatal(err)
				}
				held = made
			}
			b.StopTimer()
			size := len(versions[0].data)
			if name == "edit" {
				size = len(edits[0].Data)
			}
			b.ReportMetric(float64(size), "B/edit")
		})
	}
}
