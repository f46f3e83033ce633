package absence

import (
	"testing"

	"k8s.io/apimachinery/pkg/types"

	"github.com/weir-dev/weir/internal/controlplane/coordinator/podauth"
	"github.com/weir-dev/weir/internal/fleetpb"
	"github.com/weir-dev/weir/pkg/limiter"
	"github.com/weir-dev/weir/pkg/policy"
	"github.com/weir-dev/weir/pkg/store"
)

// pod returns the identity of a pod.
func pod(namespace, name string) podauth.Identity {
	return podauth.Identity{Namespace: namespace, Pod: name, PodUID: name + "-uid"}
}

// A stage is the time in which sidecars come back to a new leader, by a clock that a test
// moves. The limit is 100 in 10 s, and there are two sidecars that were sent that number.
type stage struct {
	*Tracker
	t      *testing.T
	now    limiter.Instant
	policy policy.Policy
}

const stageWindow = 10 * limiter.Second

func newStage(t *testing.T) *stage {
	p := policy.Policy{
		Namespace: "shop", Name: "checkout", Generation: 1, Mode: policy.Enforce,
		Store:  policy.Store{Type: policy.ControllerStore},
		Limits: []policy.Limit{{Name: "all", Rates: []limiter.Rate{{Limit: 100, Window: stageWindow}}}},
	}
	s := &stage{t: t, policy: p, now: limiter.Instant(1000 * limiter.Second)}
	s.Tracker = New(func() limiter.Instant { return s.now }, false, nil)
	s.Await([]podauth.Identity{pod("shop", "web-0"), pod("shop", "web-1")})
	return s
}

// served returns the policies that the sidecars are served by.
func (s *stage) served() map[types.NamespacedName]*policy.Policy {
	return map[types.NamespacedName]*policy.Policy{{Namespace: "shop", Name: "checkout"}: &s.policy}
}

// at moves the clock to a number of seconds after the term began.
func (s *stage) at(second float64) {
	s.now = limiter.Instant(1000*limiter.Second) + limiter.Instant(second*float64(limiter.Second))
}

// promises has a sidecar do what it is asked for, and returns whether that counts.
func (s *stage) promises(name, nonce string, begun limiter.Instant) bool {
	s.t.Helper()
	m := s.Ask("shop")
	if m == nil {
		s.t.Fatal("nothing is asked for")
	}
	return s.says(name, nonce, begun, m.GetPromise())
}

func (s *stage) says(name, nonce string, begun limiter.Instant, r *fleetpb.PromiseRequest) bool {
	id := pod("shop", name)
	ok := s.Promise(id, nonce, map[types.NamespacedName]int64{{Namespace: "shop", Name: "checkout"}: 2}, begun, limiter.Instant(r.GetUntilMicros()))
	if ok {
		s.Enter(id.PodUID, s.served())
	}
	return ok
}

// require fails unless want units are granted of a window that begins at the second.
func (s *stage) require(second float64, want int64) {
	s.t.Helper()
	s.at(second)
	params := s.policy.Limits[0].Params(&s.policy)
	absences := s.Absences(store.Scope{Namespace: "shop", Policy: "checkout", Limit: "all"})
	_, res := params.Step(limiter.State{}, s.now, limiter.Command{
		Op: limiter.Take, Min: 1, Want: 100, Memory: limiter.Memory{Absences: absences},
	})
	if res.Granted != want {
		s.t.Errorf("granted %d of the window at %v s, want %d", res.Granted, second, want)
	}
}

// TestAShareIsGrantedOfWindowsThatItsHolderPromised not to begin.
func TestAShareIsGrantedOfWindowsThatItsHolderPromised(t *testing.T) {
	for name, tc := range map[string]func(*stage){
		"both promised": func(s *stage) {
			s.at(8)
			s.promises("web-0", "1", 0)
			s.promises("web-1", "1", 0)
			s.require(10, 100)
		},
		"one promised": func(s *stage) {
			s.at(8)
			s.promises("web-0", "1", 0)
			s.require(10, 50)
		},
		"it is over": func(s *stage) {
			s.at(4.9)
			s.promises("web-0", "1", 0)
			s.require(10, 0)
		},
		"it lasts a little longer than the window begins": func(s *stage) {
			s.at(5.1)
			s.promises("web-0", "1", 0)
			s.require(10, 50)
		},
		"it is over, but the window began before": func(s *stage) {
			s.at(8)
			s.promises("web-0", "1", 0)
			s.require(19, 50)
			s.require(20, 0)
		},
		"it is made again in time": func(s *stage) {
			s.at(4)
			s.promises("web-0", "1", 0)
			s.at(6)
			s.promises("web-0", "1", 0)
			s.require(10, 50)
		},
		"it is made again later": func(s *stage) {
			s.at(3)
			s.promises("web-0", "1", 0)
			s.at(9)
			s.promises("web-0", "1", 0)
			s.require(10, 50)
		},
		"it is made again once the window began": func(s *stage) {
			s.at(3)
			s.promises("web-0", "1", 0)
			s.at(11)
			s.promises("web-0", "1", limiter.Instant(1010*limiter.Second))
			s.require(12, 0)
			s.at(18)
			s.promises("web-0", "1", limiter.Instant(1010*limiter.Second))
			s.require(20, 50)
		},
		"it came too late": func(s *stage) {
			s.at(3)
			late := s.Ask("shop").GetPromise()
			s.at(8)
			if s.says("web-0", "1", 0, late) {
				s.t.Error("a promise counts that is over")
			}
			s.require(10, 0)
		},
		"it was overtaken": func(s *stage) {
			s.at(5)
			first := s.Ask("shop").GetPromise()
			s.at(7)
			s.promises("web-0", "1", 0)
			if !s.says("web-0", "1", 0, first) {
				s.t.Error("a promise is broken by one that it overtook")
			}
			s.require(10, 50)
			s.require(11, 50)
		},
		"a window was begun that is yet to come": func(s *stage) {
			s.at(8)
			if s.promises("web-0", "1", s.now+1) {
				s.t.Error("a sidecar is back that has begun a later window")
			}
			s.require(10, 0)
		},
		"it was not kept": func(s *stage) {
			s.at(8)
			s.promises("web-0", "1", 0)
			s.at(11)
			if s.promises("web-0", "1", limiter.Instant(1010*limiter.Second)) {
				s.t.Error("a promise goes on that was not kept")
			}
			s.require(20, 0)
		},
		"another process of the pod waits for its end": func(s *stage) {
			s.at(4)
			s.promises("web-0", "1", 0)
			s.at(6)
			if s.promises("web-0", "2", 0) {
				s.t.Error("what one process promised another one goes on with")
			}
			s.at(9.5)
			if !s.promises("web-0", "2", 0) {
				s.t.Error("nothing is promised although the promise before is over")
			}
			s.require(10, 50)
		},
		"its sidecar left": func(s *stage) {
			s.at(3)
			s.promises("web-0", "1", 0)
			s.Leave(pod("shop", "web-0").PodUID)
			s.require(10, 50)
		},
		"its pod is gone, after it was over": func(s *stage) {
			s.at(3)
			s.promises("web-0", "1", 0)
			s.Lose(pod("shop", "web-0"), nil)
			s.require(10, 0)
			s.Settle("shop", map[string]struct{}{pod("shop", "web-1").PodUID: {}}, func(types.NamespacedName) bool { return true })
			s.require(11, 0)
			s.require(20, 50)
		},
		"all promised once": func(s *stage) {
			s.at(3)
			s.promises("web-0", "1", 0)
			s.promises("web-1", "1", 0)
			s.at(7)
			s.promises("web-0", "1", 0)
			s.require(10, 50)
			s.require(20, 100) // the first that began when all were back is over
		},
		"the other pod is gone": func(s *stage) {
			s.at(7)
			s.promises("web-0", "1", 0)
			s.Settle("shop", map[string]struct{}{pod("shop", "web-0").PodUID: {}}, func(types.NamespacedName) bool { return true })
			s.require(10, 100)
		},
		"a new one was sent a number": func(s *stage) {
			s.at(3)
			until := limiter.Instant(s.Ask("shop").GetPromise().GetUntilMicros())
			name := types.NamespacedName{Namespace: "shop", Name: "checkout"}
			if id := pod("shop", "web-2"); !s.Promise(id, "1", nil, 0, until) || !s.MaySend(id, name, 4) {
				s.t.Error("a new sidecar is not sent a number of holders")
			}
			s.at(8)
			if s.MaySend(pod("shop", "web-2"), name, 3) {
				s.t.Error("a sidecar whose promise is over is sent another number")
			}
			s.promises("web-0", "1", 0)
			s.require(10, 25)
		},
		"one is of an earlier version": func(s *stage) {
			s.at(3)
			s.Arrive(pod("shop", "web-1"), map[types.NamespacedName]int64{{Namespace: "shop", Name: "checkout"}: 2})
			s.Enter(pod("shop", "web-1").PodUID, s.served())
			s.require(10, 50)
		},
	} {
		t.Run(name, func(t *testing.T) { tc(newStage(t)) })
	}
}

// TestSharesInUseAreNotGivenToOthers: three holders have promised. A fourth has a quarter, and
// its stream is up or broken; it is subtracted once, and never one that was not counted.
func TestSharesInUseAreNotGivenToOthers(t *testing.T) {
	name := types.NamespacedName{Namespace: "shop", Name: "checkout"}
	quarter := map[string]int64{"uid": 4}
	three := limiter.Shares{Of: 4, At: make([]limiter.Instant, 3)}
	four := limiter.Shares{Of: 4, At: make([]limiter.Instant, 4)}
	for what, tc := range map[string]struct {
		staged          bool
		back            limiter.Shares
		brought, breaks bool
		away            map[string]int64
		want            int64
	}{
		"nobody else":                              {want: 3},
		"one has not promised":                     {away: quarter, want: 4},
		"two have not promised":                    {away: map[string]int64{"uid": 4, "other": 4}, want: 6},
		"three have not, of different numbers":     {away: map[string]int64{"uid": 4, "other": 4, "third": 6}, want: 9},
		"its former stream broke":                  {away: quarter, breaks: true, want: 4},
		"others are awaited, and it was back once": {staged: true, back: four, brought: true, away: quarter, want: 4},
		"others are awaited, and it never was":     {staged: true, back: three, away: quarter, want: 4},
	} {
		t.Run(what, func(t *testing.T) {
			r := New(func() limiter.Instant { return 1 }, !tc.staged, nil)
			if tc.staged {
				r.policies[name] = &comeback{Absence: limiter.Absence{Until: limiter.MaxInstant, Back: []limiter.Shares{tc.back}}}
			}
			if tc.brought {
				r.brought["uid"] = nil
			}
			if tc.breaks {
				r.Lose(podauth.Identity{Namespace: "shop", PodUID: "uid"}, map[types.NamespacedName]int64{name: 4})
			}
			if got := r.Divisor(name, 3, tc.away); got != tc.want {
				t.Errorf("three are sent %d holders, want %d", got, tc.want)
			}
		})
	}
}

// TestPromisesAreAskedFor while somebody is absent, and until a window has begun after that.
func TestPromisesAreAskedFor(t *testing.T) {
	s := newStage(t)
	s.at(1)
	first := s.Ask("shop").GetPromise()
	if got := limiter.Instant(first.GetUntilMicros()).Sub(limiter.Instant(first.GetNowMicros())); got != PromiseTime || first.GetNowMicros() != int64(s.now) {
		t.Errorf("asked for %v", first)
	}
	s.at(1.9)
	if next := s.Ask("shop").GetPromise(); next.GetUntilMicros() != first.GetUntilMicros() {
		t.Errorf("asked for %v beside %v", next, first)
	}
	if s.Ask("other") != nil {
		t.Error("sidecars are asked although nobody was absent")
	}
	s.promises("web-0", "1", 0)
	s.at(4)
	s.promises("web-1", "1", 0)
	s.at(14)
	if s.Ask("shop") == nil {
		t.Error("nobody is asked any more, though no window need have begun since all are back")
	}
	s.at(14.1)
	if s.Ask("shop") != nil {
		t.Error("all are asked for good")
	}
	if New(func() limiter.Instant { return 1 }, true, nil).Ask("shop") != nil {
		t.Error("the first leader asks")
	}
}
