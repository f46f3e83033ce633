package controllers

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/weir-dev/weir/api/v1alpha1"
	"github.com/weir-dev/weir/internal/controlplane/audit"
	"github.com/weir-dev/weir/internal/controlplane/coordinator"
	"github.com/weir-dev/weir/internal/controlplane/cutover"
	"github.com/weir-dev/weir/internal/controlplane/translate"
	"github.com/weir-dev/weir/pkg/policy"
	"github.com/weir-dev/weir/pkg/store"
)

// TestSidecarsThatHoldOnToTheOldStore finds them while that store is to be released.
func TestSidecarsThatHoldOnToTheOldStore(t *testing.T) {
	of := policy.Store{Type: policy.RedisStore, Address: "redis:6379", Secret: "shop/db"}
	drained := func(change ...func(*policy.Policy)) func(name string) func(*scope) {
		return func(name string) func(*scope) {
			return func(s *scope) {
				p := &policy.Policy{Generation: translate.Generation(s.policy), Store: of, Since: 7, Draining: true}
				p.Store.SecretVersion = "9" // nothing depends on it
				for _, c := range change {
					c(p)
				}
				policySession(coordinator.PolicySession{Session: coordinator.Session{Pod: name, PodUID: "uid-" + name}, Enforced: p})(s)
			}
		}
	}
	leaving := func(s *scope) { s.pods.leaving = []enforcer{{"old", "uid-old", true}} }
	starting := func(s *scope) { s.pods.enforcers = append(s.pods.enforcers, enforcer{"new", "uid-new", false}) }
	refused := session(coordinator.Session{Pod: "a", PodUID: "uid-a", Error: "no"})
	silent := func(name string) func(*scope) {
		return session(coordinator.Session{Pod: name, PodUID: "uid-" + name})
	}
	for name, tc := range map[string]struct {
		fleet []func(*scope)
		want  string
	}{
		"nobody":                           {},
		"all have drained":                 {[]func(*scope){enforcers("a"), drained()("a"), leaving, drained()("old")}, ""},
		"a pod that does not run yet":      {[]func(*scope){starting}, ""},
		"but it is connected already":      {[]func(*scope){starting, silent("new")}, "new (has not acknowledged it)"},
		"a running pod out of reach":       {[]func(*scope){enforcers("a", "b"), drained()("a")}, "b (not connected)"},
		"one that has not acknowledged":    {[]func(*scope){enforcers("a"), silent("a")}, "a (has not acknowledged it)"},
		"one that refuses it":              {[]func(*scope){enforcers("a"), refused}, "a (refused it: no)"},
		"a pod on its way out serves":      {[]func(*scope){leaving}, "old (not connected)"},
		"and it has not drained":           {[]func(*scope){leaving, silent("old")}, "old (has not acknowledged it)"},
		"a pod that nobody knows any more": {[]func(*scope){silent("ghost")}, "ghost (has not acknowledged it)"},
		"one with the policy before an edit": {
			[]func(*scope){enforcers("a"), drained(func(p *policy.Policy) { p.Generation-- })("a")}, "a (has not acknowledged it)",
		},
		"one that is to serve again": {
			[]func(*scope){enforcers("a"), drained(func(p *policy.Policy) { p.Draining = false })("a")}, "a (has not acknowledged it)",
		},
		"one that serves from another instant": {
			[]func(*scope){enforcers("a"), drained(func(p *policy.Policy) { p.Since = 0 })("a")}, "a (has not acknowledged it)",
		},
		"one that lets go of another store": {
			[]func(*scope){enforcers("a"), drained(func(p *policy.Policy) { p.Store.Address = "other:6379" })("a")}, "a (has not acknowledged it)",
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := newScope(tc.fleet...)
			s.move.draining, s.move.from = true, 7
			if diff := cmp.Diff(tc.want, s.holdsOn(of)); diff != "" {
				t.Errorf("who holds on (-want +got):\n%s", diff)
			}
		})
	}
}

func TestOneServerReachedInTwoWays(t *testing.T) {
	of := policy.Store{Type: policy.RedisStore, Address: "redis:6379", Secret: "shop/db", SecretVersion: "1"}
	for name, tc := range map[string]struct {
		change func(*policy.Store)
		want   bool
	}{
		"other credentials": {func(s *policy.Store) { s.Secret, s.SecretVersion = "shop/other", "" }, true},
		"access":            {func(s *policy.Store) { s.Gateway = true }, true},
		"encryption":        {func(s *policy.Store) { s.TLS = true }, true},
		"another address":   {func(s *policy.Store) { s.Address = "redis:6380" }, false},
		"another database":  {func(s *policy.Store) { s.Database = "d" }, false},
		"another primary":   {func(s *policy.Store) { s.Sentinel = "main" }, false},
		"a cluster":         {func(s *policy.Store) { s.Cluster = true }, false},
		"another type":      {func(s *policy.Store) { s.Type = policy.PostgresStore }, false},
	} {
		other := of
		tc.change(&other)
		if got := sameCounters(of, other); got != tc.want {
			t.Errorf("%s: the same counters: %t, want %t", name, got, tc.want)
		}
	}
}

// TestAMessageFitsTheAPI: a status that is refused would leave a move where it is.
func TestAMessageFitsTheAPI(t *testing.T) {
	s := newScope()
	s.move.step = cutover.Step{State: cutover.State{Phase: cutover.Draining}, Message: strings.Repeat("ü", 5000)}
	if got := len([]rune(storeStatus(s).Message)); got != maxMessage {
		t.Errorf("the message has %d characters, want %d", got, maxMessage)
	}
	if got := shortened("short"); got != "short" {
		t.Errorf("a short message became %q", got)
	}
	many := newScope(looser(true, false))
	for range 31 {
		many.policy.Spec.Limits = append(many.policy.Spec.Limits, many.policy.Spec.Limits[0])
	}
	if got := []rune(guarantee(many).Reason); len(got) != maxMessage {
		t.Errorf("the reason of many limits has %d characters, want %d", len(got), maxMessage)
	}
}

func TestAStatusSaysWhatARestartLoses(t *testing.T) {
	moved := func(s *scope) { s.move.step.Moved = true }
	for name, tc := range map[string]struct {
		scope *scope
		want  v1alpha1.StoreRestart
	}{
		"the controller":                {newScope(), ""},
		"a server that keeps all":       {newScope(onRedis(store.Facts{Lossless: true}, nil)), v1alpha1.LosslessRestart},
		"a server that may lose some":   {newScope(onRedis(store.Facts{}, nil)), v1alpha1.LossyRestart},
		"a server that does not answer": {newScope(onRedis(store.Facts{Lossless: true}, errors.New("timeout"))), ""},
		"a server that takes over":      {newScope(onRedis(store.Facts{Lossless: true}, nil), moved), ""},
	} {
		if got := storeStatus(tc.scope).Restart; got != tc.want {
			t.Errorf("%s: a restart is %q, want %q", name, got, tc.want)
		}
	}
}

func TestAMoveIsShown(t *testing.T) {
	redis := v1alpha1.Store{Type: v1alpha1.RedisStoreType, Redis: &v1alpha1.RedisStore{Address: "redis.shop.svc:6379"}}
	step := func(phase cutover.Phase, message string) func(*scope) {
		return func(s *scope) {
			s.policy.Spec.Store.Store = redis
			s.policy.Status.Store = &v1alpha1.StoreStatus{Active: v1alpha1.Store{Type: v1alpha1.ControllerStore}}
			s.move.step = cutover.Step{State: cutover.State{Phase: phase}, Message: message}
		}
	}
	unknown := func(s *scope) {
		step(cutover.Draining, "waiting for b")(s)
		s.policy.Status.Store, s.move.draining = nil, true
	}
	for name, tc := range map[string]struct {
		scope *scope
		want  string
	}{
		"waiting": {newScope(step(cutover.Serving, "b lags")), "the leading controller keeps the counters; " +
			"the counters are to move to Redis at redis.shop.svc:6379: b lags"},
		"draining": {newScope(step(cutover.Draining, "b lags")), "the leading controller keeps the counters; " +
			"requests are refused while the counters move to Redis at redis.shop.svc:6379: b lags"},
		"nobody knows from where": {newScope(unknown), "the leading controller keeps the counters; requests are refused: waiting for b"},
		"nothing moves":           {newScope(step(cutover.Serving, "")), "the leading controller keeps the counters"},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, storeReachable(tc.scope).Message); diff != "" {
				t.Errorf("message (-want +got):\n%s", diff)
			}
		})
	}
}

// looser has the limit carry leases over, or be charged after the fact.
func looser(carry, unsettled bool) func(*scope) {
	return func(s *scope) {
		l := policy.Limit{Name: "all"}
		if unsettled {
			l.Cost = &policy.Cost{Default: 1, Max: 100, ResponseHeader: "X-Cost"}
		}
		s.enforced = policy.Policy{Limits: []policy.Limit{l}}
		if carry {
			s.enforced.Consistency = policy.Consistency{Mode: policy.Leased, Size: policy.Fixed, Batch: 10, Expiry: policy.CarryOver, LowWater: 3}
		}
	}
}

func TestABoundThatIsNotTheLimitIsShown(t *testing.T) {
	one := store.Facts{Volatile: store.Keeping{Guarantee: store.Guarantee{Grade: store.Hard, Reason: "one server"}}}
	for name, tc := range map[string]struct {
		scope *scope
		want  string
	}{
		"carry-over": {
			newScope(onRedis(one, nil), looser(true, false)),
			"one server; leases carry over, so a window of limit all may admit 12 more for each pod",
		},
		"a cost that the response reports": {
			newScope(onRedis(one, nil), looser(true, true)),
			"one server; nothing bounds limit all, as its responses report what requests cost",
		},
	} {
		t.Run(name, func(t *testing.T) {
			for range 2 { // saying it twice does not pile up
				got := guarantee(tc.scope)
				if got == nil || got.Grade != v1alpha1.HardGuarantee || got.Reason != tc.want {
					t.Errorf("guarantee is %+v, want Hard, %q", got, tc.want)
				}
			}
		})
	}
}

func TestABoundIsAbsentWhereNothingBounds(t *testing.T) {
	unsettled := statusOf(newScope(looser(false, true), figures("all", measuredFigures(30, 0, 0))))
	if o := unsettled.Limits[0].Overshoot; o == nil || o.Bound != nil || *o.Observed != 30 {
		t.Errorf("overshoot is %+v, want 30 without a bound", o)
	}
	if got := unsettled.Summary.Overshoot; got != "30 ≤ ∞" {
		t.Errorf("the column says %q", got)
	}
	carried := statusOf(newScope(looser(true, false), figures("all", measuredFigures(20, 24, 0))))
	if got := carried.Summary.Overshoot; got != "20 ≤ 24" {
		t.Errorf("the column of leases that carry over says %q", got)
	}

	worst := func(o audit.Overshoot) func(*scope) {
		return figures("all", audit.Figures{Verdict: audit.Measured, Overshoot: &o})
	}
	for name, tc := range map[string]struct {
		scope *scope
		want  string
	}{
		"responses": {newScope(looser(false, true), worst(audit.Overshoot{Worst: 9, WorstUnbounded: true})), "responses reported what their requests cost"},
		"leases":    {newScope(looser(true, false), worst(audit.Overshoot{Worst: 9})), "leases carry over"},
	} {
		if got := withinBound(tc.scope); got.Reason != v1alpha1.MeasuredReason || !strings.Contains(got.Message, tc.want) {
			t.Errorf("%s: WithinBound says %s, %q", name, got.Reason, got.Message)
		}
	}
}
