package coordinator

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/types"

	"github.com/weir-dev/weir/internal/coordinator/podauth"
	"github.com/weir-dev/weir/internal/fleetpb"
	"github.com/weir-dev/weir/pkg/limiter"
	"github.com/weir-dev/weir/pkg/policy"
	"github.com/weir-dev/weir/pkg/store"
)

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
		if got := l.toldOf(pod(p.Namespace, name), p); got != want {
			t.Errorf("%s was told of %d holders, want %d", name, got, want)
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
				p, terms := limited("shop", 1, 10, 4*limiter.Second), &memoryTerms{left: Handover{Term: 1}}
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

// TestALimitThatIsNewIsServedAtOnce, also while sidecars are absent.
func TestALimitThatIsNewIsServedAtOnce(t *testing.T) {
	r := newReturns(func() limiter.Instant { return 5 }, false, nil)
	r.await([]podauth.Identity{pod("shop", "web-0")})
	known, created := store.Scope{Namespace: "shop", Policy: "checkout", Limit: "all"}, store.Scope{Namespace: "shop", Policy: "checkout", Limit: "other"}
	r.create(created)
	if got := r.absences(created); len(got) != 0 {
		t.Errorf("absences of a new limit: %v", got)
	}
	if got := r.absences(known); len(got) != 1 || got[0].Until != limiter.MaxInstant {
		t.Errorf("absences of another: %v", got)
	}
}

// TestATermHandsOnThatItWasAbsentItself, of all that its successor does not know.
func TestATermHandsOnThatItWasAbsentItself(t *testing.T) {
	const began, stopped = limiter.Instant(50e6), limiter.Instant(90e6)
	earlier := []absence{{From: 1, Until: 10e6}, {From: 11e6, Until: 20e6}, {From: 21e6, Until: 30e6}, {From: 31e6, Until: 40e6}}
	for name, tc := range map[string]struct {
		first bool
		want  []absence
	}{
		"which is not the first": {false, append([]absence{{From: 1, Until: 20e6}}, append(slices.Clone(earlier[2:]), absence{From: began, Until: stopped})...)},
		"which is the first":     {true, nil},
	} {
		t.Run(name, func(t *testing.T) {
			data, err := newReturns(func() limiter.Instant { return began }, tc.first, &inheritance{Others: earlier}).export(stopped)
			if err != nil {
				t.Fatal(err)
			}
			got, err := inheritedFrom(data)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, got.Others); diff != "" {
				t.Errorf("handed on (-want +got):\n%s", diff)
			}
		})
	}
}

// TestWhatIsHandedOverOfReturnsIsNeverEarlier, and little.
func TestWhatIsHandedOverOfReturnsIsNeverEarlier(t *testing.T) {
	all := limiter.Shares{Of: 1000}
	for i := range 777 {
		all.At = append(all.At, limiter.Instant(i*i))
	}
	known := []limiter.Absence{{
		From: 1, Until: limiter.MaxInstant, Whole: 9, Back: []limiter.Shares{all}, Lapse: []limiter.Shares{all}, Again: []limiter.Shares{all},
	}}
	short := handedOn(known, 1e6, limiter.Second)
	if len(short) != 1 || len(short[0].Back) != 1 || len(short[0].Back[0].At) > maxSteps || short[0].Until != 1e6 {
		t.Fatalf("handed on %+v", short)
	}
	data, err := json.Marshal(inheritance{Policies: map[string][]absence{"shop/checkout": short}})
	if err != nil {
		t.Fatal(err)
	}
	read, err := inheritedFrom(data)
	if err != nil {
		t.Fatal(err)
	}
	got := read.of(types.NamespacedName{Namespace: "shop", Name: "checkout"})[0]
	if got.Whole != 9 || len(got.Back[0].At) != len(all.At) || len(got.Lapse[0].At) != len(all.At) || len(got.Again[0].At) != len(all.At) {
		t.Fatalf("read %+v", got)
	}
	for i, at := range all.At {
		if back, over, again := got.Back[0].At[i], got.Lapse[0].At[i], got.Again[0].At[i]; back < at || over > at || again < at {
			t.Fatalf("holder %d is back at %d, promises until %d and again at %d, which was at %d", i, back, over, again, at)
		}
	}
	if got := handedOn(known, limiter.Instant(limiter.Day), limiter.Second); len(got) != 1 {
		t.Errorf("an absence that lasts is left out: %v", got)
	}
	known[0].Until = 5
	if got := handedOn(known, limiter.Instant(limiter.Day), limiter.Second); len(got) != 0 {
		t.Errorf("an absence of which no window is open is handed on: %v", got)
	}
	for _, damaged := range []string{"{", `{"others":[{"back":[{"of":0}]}]}`, `{"others":[{"back":[{"of":1,"at":[2,1],"count":[1,1]}]}]}`, `{"others":[{"back":[{"of":1,"at":[2],"count":[]}]}]}`} {
		if _, err := inheritedFrom([]byte(damaged)); err == nil {
			t.Errorf("%s is read", damaged)
		}
	}
}
