package coordinator

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"
	"weak"

	"github.com/go-logr/logr"
	"google.golang.org/protobuf/proto"
	"k8s.io/apimachinery/pkg/types"

	"github.com/weir-dev/weir/internal/controlplane/coordinator/podauth"
	"github.com/weir-dev/weir/internal/fleetpb"
	"github.com/weir-dev/weir/pkg/limiter"
	"github.com/weir-dev/weir/pkg/policy"
	"github.com/weir-dev/weir/pkg/policy/revision"
	"github.com/weir-dev/weir/pkg/store"
)

// connectEditor opens a session of a holder that makes edits and enforces that version.
func (l *leader) connectEditor(id podauth.Identity, nonce, version string) *sidecar {
	l.t.Helper()
	s := l.dial(tokenOf(id))
	hello := helloOf(id, nonce)
	hello.Edits, hello.ConfigVersion = true, version
	s.send(&fleetpb.FromHolder{Message: &fleetpb.FromHolder_Hello{Hello: hello}})
	if m := s.recv(); m.GetWelcome() == nil {
		l.t.Fatalf("got %v, want a welcome", m)
	}
	return s
}

// several returns policies p0, p1 and so on. The one of that number has that generation.
func several(n, number int, generation int64) (all []policy.Policy) {
	for i := range n {
		p := limited("shop", 1, 10, limiter.Second)
		if p.Name = fmt.Sprint("p", i); i == number {
			p.Generation = generation
		}
		all = append(all, p)
	}
	slices.SortFunc(all, func(a, b policy.Policy) int { return cmp.Compare(a.Name, b.Name) })
	return all
}

// namesIn returns the names of the policies in a message.
func namesIn(t *testing.T, c *fleetpb.Config) (names []string) {
	t.Helper()
	entries, err := policy.Split(c.GetSnapshot())
	if err != nil {
		t.Fatal(err)
	}
	for _, raw := range entries.Policies {
		var p policy.Policy
		if err := json.Unmarshal(raw, &p); err != nil {
			t.Fatal(err)
		}
		names = append(names, p.Name)
	}
	return names
}

// TestAnEditSendsWhatChanged to a holder that makes edits, before and after it has acknowledged the last
// one, and all of it to others.
func TestAnEditSendsWhatChanged(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := lead(t, &memoryTerms{}, publishing(several(5, 0, 1)...))
		defer l.end()
		holder, older := l.connectEditor(pod("shop", "web-0"), "1", ""), l.connect(pod("shop", "web-1"), "1")
		defer holder.close()
		defer older.close()
		first := holder.receiveConfig()
		if older.receiveConfig(); first.GetBase() != "" || len(namesIn(t, first)) != 5 {
			t.Fatalf("it began with %v", first)
		}
		before := first.GetVersion()
		for i, all := range [][]policy.Policy{several(5, 3, 2), several(4, 3, 2), several(5, 3, 2)} {
			l.policies.set(true, all...)
			l.Refresh("shop")
			c, want := holder.receiveConfig(), [][]string{{"p3"}, nil, {"p4"}}[i]
			if c.GetBase() != before || !slices.Equal(namesIn(t, c), want) || len(c.GetRemoved()) != []int{0, 1, 0}[i] || c.GetSecretsRenewed() {
				t.Errorf("edit %d of %s is %v", i, before, c)
			}
			whole := older.receiveConfig()
			if whole.GetBase() != "" || whole.GetVersion() != c.GetVersion() || len(namesIn(t, whole)) != len(all) {
				t.Errorf("a holder that makes no edits was sent %v", whole)
			}
			if i == 1 {
				holder.acknowledge(c.GetVersion(), "")
			}
			before = c.GetVersion()
		}
		synctest.Wait()
		if got := l.Observe("shop", "p3").Holders; got != 2 {
			t.Errorf("%d are served by the edited policy", got)
		}
	})
}

// TestAHolderThatCannotMakeAnEditIsSentTheWhole, once. That is not a refusal.
func TestAHolderThatCannotMakeAnEditIsSentTheWhole(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := lead(t, &memoryTerms{}, publishing(several(5, 0, 1)...))
		defer l.end()
		s := l.connectEditor(pod("shop", "web-0"), "1", "")
		defer s.close()
		s.acknowledge(s.receiveConfig().GetVersion(), "")
		synctest.Wait()
		l.policies.set(true, several(5, 3, 2)...)
		l.Refresh("shop")
		edited := s.receiveConfig()
		cannot := func() {
			s.send(&fleetpb.FromHolder{Message: &fleetpb.FromHolder_Acknowledge{Acknowledge: &fleetpb.Acknowledge{
				Version: edited.GetVersion(), Error: "it is not the base", Whole: true,
			}}})
			synctest.Wait()
		}
		cannot()
		whole := s.receiveConfig()
		if whole.GetBase() != "" || whole.GetVersion() != edited.GetVersion() || len(namesIn(t, whole)) != 5 {
			t.Errorf("got %v, want the whole of %s", whole, edited.GetVersion())
		}
		if got := l.Observe("shop", "p3").Sessions; len(got) != 1 || got[0].Error != "" || got[0].Generation != 1 {
			t.Errorf("meanwhile it is observed as %+v", got)
		}
		cannot() // of a whole
		if got := l.Observe("shop", "p3").Sessions; len(got) != 1 || got[0].Error == "" {
			t.Errorf("it is observed as %+v, want why it does not enforce the whole", got)
		}
		s.acknowledge(whole.GetVersion(), "")
		synctest.Wait()
		if got := l.Observe("shop", "p3").Sessions; len(got) != 1 || got[0].Error != "" || got[0].Generation != 2 {
			t.Errorf("in the end it is observed as %+v", got)
		}
	})
}

// TestAnEditBringsCredentialsThatChanged, and no others.
func TestAnEditBringsCredentialsThatChanged(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		of := func(version string, generation int64) []policy.Policy {
			return append(several(5, 3, generation), withSecret("q", version))
		}
		policies := publishing(of("7", 1)...)
		policies.keeps(passwords)
		l := lead(t, &memoryTerms{}, policies)
		defer l.end()
		s := l.connectEditor(pod("shop", "web-0"), "1", "")
		defer s.close()
		s.receiveConfig()
		for _, step := range []struct {
			all     []policy.Policy
			secrets int
			renewed bool
		}{{of("7", 2), 0, false}, {of("8", 2), 1, true}, {of("8", 3), 0, false}, {several(5, 3, 3), 0, true}} {
			l.policies.set(true, step.all...)
			l.Refresh("shop")
			c := s.receiveConfig()
			if c.GetBase() == "" || len(c.GetSecrets()) != step.secrets || c.GetSecretsRenewed() != step.renewed {
				t.Errorf("got %v, want %d credentials, renewed: %t", c, step.secrets, step.renewed)
			}
		}
	})
}

// TestTheShareOfAPolicyThatAnEditAddsIsEntered: the holder came with it from the leader before.
func TestTheShareOfAPolicyThatAnEditAddsIsEntered(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := lead(t, &memoryTerms{}, publishing(several(1, 0, 1)...))
		defer l.end()
		id := pod("shop", "web-0")
		s := l.dial(tokenOf(id))
		defer s.close()
		hello := helloOf(id, "1")
		hello.Edits, hello.Holders = true, []*fleetpb.Holders_Count{{Namespace: "shop", Policy: "p0", Holders: 3}, {Namespace: "shop", Policy: "p1", Holders: 5}}
		s.send(&fleetpb.FromHolder{Message: &fleetpb.FromHolder_Hello{Hello: hello}})
		s.recv()
		s.acknowledge(s.receiveConfig().GetVersion(), "")
		synctest.Wait()
		l.policies.set(true, several(2, 0, 1)...)
		l.Refresh("shop")
		synctest.Wait()
		for name, want := range map[string]int64{"p0": 3, "p1": 5} {
			var of []int64
			for _, absent := range l.present.Load().absences.Absences(store.Scope{Namespace: "shop", Policy: name, Limit: "all"}) {
				for _, back := range absent.Back {
					of = append(of, back.Of)
				}
			}
			if !slices.Equal(of, []int64{want}) {
				t.Errorf("back are shares of %v of %s, want one of %d", of, name, want)
			}
		}
	})
}

// TestAHolderAccountsForWhatAnEditLeaves, and no longer for a policy that it removes.
func TestAHolderAccountsForWhatAnEditLeaves(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := lead(t, &memoryTerms{}, publishing(several(3, 0, 1)...))
		defer l.end()
		s := l.connectEditor(pod("shop", "web-0"), "1", "")
		defer s.close()
		s.receiveConfig()
		l.policies.set(true, several(2, 1, 2)...)
		l.Refresh("shop")
		s.receiveConfig()
		synctest.Wait()
		all := l.present.Load().accounting
		all.mu.Lock()
		defer all.mu.Unlock()
		for name, want := range map[string]int{"p0": 1, "p1": 1, "p2": 0} {
			if got := len(all.byName[types.NamespacedName{Namespace: "shop", Name: name}].holders); got != want {
				t.Errorf("%d account for %s, want %d", got, name, want)
			}
		}
	})
}

func configOf(t testing.TB, all ...policy.Policy) *config {
	t.Helper()
	c, err := newConfig(policy.Snapshot{Cluster: "test", Policies: all}, nil)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// TestAnEditIsMadeOnce, not for each session, and is not much of what is sent as a whole.
func TestAnEditIsMadeOnce(t *testing.T) {
	a, b := configOf(t, several(20, 3, 1)...), configOf(t, several(20, 3, 2)...)
	e, first := b.editOf(a), b.from(a)
	if e == nil || b.editOf(a) != e || b.from(a) != first {
		t.Errorf("edit %v is made again", e)
	}
	if whole := proto.Size(b.message); 5*proto.Size(e) > whole {
		t.Errorf("an edit has %d bytes, of %d", proto.Size(e), whole)
	}
	if other := configOf(t, several(20, 3, 3)...).editOf(b); proto.Equal(other, e) {
		t.Error("two edits are the same")
	}
	for name, before := range map[string]*config{"nothing": nil, "itself": b, "what has nothing in common": configOf(t, withSecret("q", "1"))} {
		if b.editOf(before) != nil {
			t.Errorf("there is an edit of %s", name)
		}
	}
}

// TestStepsAreBounded, and keep no config that is not in use.
func TestStepsAreBounded(t *testing.T) {
	c := configOf(t, several(5, 3, 1)...)
	var begun []weak.Pointer[config]
	for i := range 3 * maxSteps {
		before := configOf(t, several(5, 3, int64(i+2))...)
		c.editOf(before)
		before.editOf(c)
		begun = append(begun, weak.Make(before))
		if n := len(c.steps.known); n > maxSteps {
			t.Fatalf("%d steps are known", n)
		}
	}
	runtime.GC()
	for i, p := range begun {
		if p.Value() != nil {
			t.Errorf("config %d is kept", i)
		}
	}
	runtime.KeepAlive(c)
}

// An editor is a holder that makes edits by the code of the sidecar, and now and then refuses one.
type editor struct {
	id     podauth.Identity
	starts int // of its process
	held   *revision.Held
	mu     sync.Mutex
	clumsy func() bool // nil: never
	ended  chan struct{}
	hangUp func()
}

var errClumsy = errors.New("it fell")

// run serves a session until that ends.
func (e *editor) run(s *sidecar) {
	defer close(e.ended)
	for {
		m, err := s.stream.Recv()
		if err != nil {
			return
		}
		c := m.GetConfig()
		if c == nil {
			continue
		}
		a := &fleetpb.Acknowledge{Version: c.GetVersion()}
		if err := e.take(c); err != nil {
			a.Error, a.Whole = err.Error(), errors.Is(err, revision.ErrBase)
		}
		if s.stream.Send(&fleetpb.FromHolder{Message: &fleetpb.FromHolder_Acknowledge{Acknowledge: a}}) != nil {
			return
		}
	}
}

func (e *editor) take(c *fleetpb.Config) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.clumsy != nil && e.clumsy() {
		return errClumsy
	}
	next, err := e.held.Whole(c.GetVersion(), c.GetSnapshot())
	if c.GetBase() != "" {
		of := revision.Edit{Base: c.GetBase(), Version: c.GetVersion(), Digest: c.GetDigest(), Data: c.GetSnapshot()}
		for _, n := range c.GetRemoved() {
			of.Removed = append(of.Removed, revision.Name{Kind: revision.Kind(n.GetKind()), Namespace: n.GetNamespace(), Name: n.GetName()})
		}
		next, err = e.held.Edited(of)
	}
	if err == nil {
		e.held = next
	}
	return err
}

// enforced returns the version and what that is, as text.
func (e *editor) enforced(t *testing.T) (version, text string) {
	t.Helper()
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.held.Set == nil {
		return "", ""
	}
	data, err := json.Marshal(e.held.Set.Snapshot)
	if err != nil {
		t.Fatal(err)
	}
	return e.held.Version, string(data)
}

// TestNoHolderEnforcesAMixture edits at random, while holders come and go, start again, refuse
// configurations, and leaders change. Each holder enforces what was published under the version that it
// names, and in the end the last.
func TestNoHolderEnforcesAMixture(t *testing.T) {
	seeds := 12
	if underRace {
		seeds = 3
	}
	for seed := range uint64(seeds) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { mixture(t, rand.New(rand.NewPCG(seed, 11))) })
		})
	}
}

func mixture(t *testing.T, r *rand.Rand) {
	published := map[string]string{"": ""}
	resolver, terms, last := publishing(), &memoryTerms{}, ""
	edit := func() {
		var all []policy.Policy
		for i := range 8 {
			if r.IntN(4) > 0 {
				p := limited("shop", 1+r.Int64N(3), 10, limiter.Second)
				p.Name = fmt.Sprint("p", i)
				all = append(all, p)
			}
		}
		c := configOf(t, all...)
		set, err := policy.Compile(c.snapshot)
		if err != nil {
			t.Fatal(err)
		}
		text, err := json.Marshal(set.Snapshot)
		if err != nil {
			t.Fatal(err)
		}
		published[c.version], last = string(text), c.version
		resolver.set(true, all...)
	}
	edit()
	l := lead(t, terms, resolver)
	var holders []*editor
	connect := func(e *editor) {
		version, _ := e.enforced(t)
		s := l.connectEditor(e.id, fmt.Sprint(e.starts), version)
		e.ended, e.hangUp = make(chan struct{}), s.close
		go e.run(s)
	}
	drop := func(e *editor) {
		e.hangUp()
		<-e.ended
	}
	for i := range 4 {
		e := &editor{id: pod("shop", fmt.Sprint("web-", i)), held: new(revision.Held)}
		taken := 0
		e.clumsy = func() bool { taken++; return i == 0 && taken%3 == 0 }
		holders = append(holders, e)
		connect(e)
	}
	for range 60 {
		e := holders[r.IntN(len(holders))]
		switch r.IntN(10) {
		case 0:
			drop(e)
			connect(e)
		case 1:
			drop(e)
			e.starts++
			e.held = new(revision.Held)
			connect(e)
		case 2:
			l.end()
			l = lead(t, terms, resolver)
			for _, e := range holders {
				drop(e)
				connect(e)
			}
		default:
			edit()
			l.Refresh("shop")
		}
		time.Sleep(time.Duration(r.IntN(3)) * 100 * time.Millisecond)
		if r.IntN(2) == 0 {
			synctest.Wait()
		}
		for _, e := range holders {
			if version, text := e.enforced(t); text != published[version] {
				t.Fatalf("%s enforces as version %q %s, which is %s", e.id.Pod, version, text, published[version])
			}
		}
	}
	for _, e := range holders {
		e.mu.Lock()
		e.clumsy = nil
		e.mu.Unlock()
	}
	edit()
	l.Refresh("shop")
	time.Sleep(time.Second)
	synctest.Wait()
	for _, e := range holders {
		if version, _ := e.enforced(t); version != last {
			t.Errorf("in the end %s enforces version %q, want %q", e.id.Pod, version, last)
		}
		drop(e)
	}
	l.end()
}

// BenchmarkEdit measures what an edit of one of a hundred policies costs the leader for each of a thousand
// sessions: to find out what they enforce, to account for it, to send it, and to enter that they have it.
func BenchmarkEdit(b *testing.B) {
	const policies, sidecars = 100, 1000
	for name, edits := range map[string]bool{"whole": false, "edit": true} {
		b.Run(name, func(b *testing.B) {
			p := publishing(several(policies, 7, 1)...)
			t := newBenchmarkTerm(b, p)
			var all []*session
			for i := range sidecars {
				id := pod("shop", fmt.Sprint("web-", i))
				hello := helloOf(id, "1")
				hello.Edits = edits
				s := newSession(id, hello, func(err error) { b.Errorf("a session ends: %v", err) })
				if _, ok := t.sessions.add(s); !ok {
					b.Fatal("there is no room")
				}
				t.arrive(s)
				all = append(all, s)
			}
			bytes, n := 0, 0
			publish := func(generation int64) {
				p.set(true, several(policies, 7, generation)...)
				if err := t.publishAll(b.Context(), "shop"); err != nil {
					b.Fatal(err)
				}
				for _, s := range all {
					for m, more := s.out.Next(); more; m, more = s.out.Next() {
						if c := m.GetConfig(); c != nil {
							bytes, n = bytes+proto.Size(m), n+1
							t.acknowledged(s, &fleetpb.Acknowledge{Version: c.GetVersion()})
						}
					}
				}
				t.sendHolders("shop")
			}
			publish(1)
			bytes, n = 0, 0
			b.ReportAllocs()
			b.ResetTimer()
			for i := range b.N {
				publish(int64(i + 2))
			}
			b.StopTimer()
			b.ReportMetric(float64(bytes)/float64(n), "B/sidecar")
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/sidecars, "ns/sidecar")
		})
	}
}

// newBenchmarkTerm returns a term that nobody but the test works on.
func newBenchmarkTerm(b testing.TB, p *policies) *term {
	b.Helper()
	c := New(Config{Resolver: p})
	b.Cleanup(c.crew.stop)
	begun, err := (&memoryTerms{}).Begin(b.Context(), leads)
	if err != nil {
		b.Fatal(err)
	}
	t := newTerm(c, begun, logr.Discard())
	b.Cleanup(t.tasks.ShutDown)
	c.present.Store(t)
	return t
}
