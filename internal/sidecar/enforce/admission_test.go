package enforce_test

import (
	"context"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weir-dev/weir/internal/sidecar/enforce"
	"github.com/weir-dev/weir/pkg/limiter"
	"github.com/weir-dev/weir/pkg/policy"
	"github.com/weir-dev/weir/pkg/store/memory"
	"github.com/weir-dev/weir/pkg/twotier"
)

// decide decides a request that has to be admitted.
func decide(t *testing.T, e *enforce.Enforcer, line string) enforce.Verdict {
	t.Helper()
	v, err := e.Decide(context.Background(), get(line))
	if err != nil || !v.Allowed {
		t.Fatalf("got %+v, %v", v, err)
	}
	return v
}

// TestARequestWaitsTheLongestOfItsDelays: limits in shadow have no say in it.
func TestARequestWaitsTheLongestOfItsDelays(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		delays := map[int64]time.Duration{1: 3 * time.Second, 2: 5 * time.Second, 4: time.Hour}
		e := newEnforcer(t, nil, scripted(func(_ string, cost int64) (twotier.Decision, error) {
			return twotier.Decision{Allowed: true, Delay: delays[cost]}, nil
		}))
		costs := func(n int64) func(*policy.Limit) {
			return func(l *policy.Limit) { l.Cost = &policy.Cost{Default: n, Max: n} }
		}
		apply(t, e, policyOf(limitOf("a", 9, costs(1)), limitOf("b", 9, costs(2)), limitOf("c", 9, costs(3)), limitOf("d", 9, costs(4), inShadow)))
		v, start := decide(t, e, "/"), time.Now()
		if n := e.Report(time.Now(), sessions.Add(1))[0].GetAdmittedTotal(); n != 0 {
			t.Errorf("%d units are counted before the request is let through", n)
		}
		if err := v.Admission.Wait(t.Context()); err != nil {
			t.Fatal(err)
		}
		if waited := time.Since(start); waited != 5*time.Second {
			t.Errorf("waited %v, want 5s", waited)
		}
		for _, r := range e.Report(time.Now(), sessions.Add(1)) {
			if r.GetAdmittedTotal() == 0 {
				t.Errorf("limit %s does not count the request", r.GetLimit())
			}
		}
		e.Close(t.Context())
	})
}

// TestARequestThatLeavesReturnsTheGrantsOfOtherLimits lets requests give up their places in
// a queue. The places are lost, since those behind heard when to go; the budget of
// the other limit is not.
func TestARequestThatLeavesReturnsTheGrantsOfOtherLimits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		clock := func() limiter.Instant { return limiter.Instant(time.Now().UnixMicro()) }
		e := newEnforcer(t, memory.New(memory.Options{Clock: clock, First: true}))
		p := policyOf(limitOf("budget", 2, func(l *policy.Limit) { l.Rates[0].Window = limiter.MaxWindow }), limitOf("even", 1, func(l *policy.Limit) {
			l.Algorithm, l.MaxDelay = policy.LeakyBucket, 10*hour
		}))
		p.Consistency = policy.Consistency{Mode: policy.Strict}
		apply(t, e, p)
		if v := decide(t, e, "/"); v.Admission != nil {
			t.Fatal("the first request waits")
		}
		for range 3 { // the budget has one unit left
			v := decide(t, e, "/")
			ctx, leave := context.WithTimeout(t.Context(), time.Minute)
			if err := v.Admission.Wait(ctx); err == nil {
				t.Fatal("it was its turn an hour too early")
			}
			leave()
			synctest.Wait() // what is given back is back
		}
		for _, limit := range []string{"budget", "even"} {
			if c := counted(e, limit); c.Admitted != 1 || c.Refused != 0 {
				t.Errorf("limit %s counted %d admitted and %d refused, want 1 and 0", limit, c.Admitted, c.Refused)
			}
		}
		e.Close(t.Context())
	})
}

// used returns the header of a response that names its cost.
func used(n string) http.Header { return http.Header{"X-Used": {n}} }

func settledBy(reserve, most int64) func(*policy.Limit) {
	return func(l *policy.Limit) { l.Cost = &policy.Cost{Default: reserve, Max: most, ResponseHeader: "x-used"} }
}

// TestSettledCostsAreCountedAndCharged runs requests that reserve 10 of 100 each: what
// each really cost is counted, and what is left of the limit serves others.
func TestSettledCostsAreCountedAndCharged(t *testing.T) {
	for name, tc := range map[string]struct {
		said            string
		admitted, units int64 // requests in all, and what they are counted as
	}{
		"each costs what is reserved": {"10", 10, 100},
		"each costs less":             {"4", 23, 92}, // 8 are left, too few for another
		"each costs more":             {"25", 4, 100},
		"each is silent":              {"", 10, 100},
	} {
		t.Run(name, func(t *testing.T) {
			e := newEnforcer(t, newStore(frozen))
			apply(t, e, policyOf(limitOf("tokens", 100, settledBy(10, 50))))
			var admitted int64
			for range 30 {
				v, err := e.Decide(context.Background(), get("/"))
				if err != nil {
					t.Fatal(err)
				}
				if v.Allowed {
					admitted++
					v.Admission.Settle(used(tc.said))
				}
			}
			if admitted != tc.admitted {
				t.Errorf("admitted %d requests, want %d", admitted, tc.admitted)
			}
			if c := counted(e, "tokens"); c.Admitted != tc.units {
				t.Errorf("counted %d units, want %d", c.Admitted, tc.units)
			}
		})
	}
}

func TestACostIsSettledOnce(t *testing.T) {
	e := newEnforcer(t, newStore(frozen))
	apply(t, e, policyOf(limitOf("tokens", 100, settledBy(10, 50))))
	a := decide(t, e, "/").Admission
	if a.Settle(http.Header{}) {
		t.Error("a response that says nothing settled it")
	}
	for range 3 {
		if !a.Settle(used("3")) {
			t.Error("it is not settled")
		}
	}
	if c := counted(e, "tokens"); c.Admitted != 3 {
		t.Errorf("counted %d units, want 3", c.Admitted)
	}
}

// TestALateSettlementChargesItsOwnWindow settles after the window is over: the one
// that is open then neither gains nor is counted anything.
func TestALateSettlementChargesItsOwnWindow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		begun := time.Now()
		e := newEnforcer(t, newStore(func() limiter.Micros { return limiter.Micros(time.Since(begun).Microseconds()) }))
		p := policyOf(limitOf("tokens", 100, settledBy(10, 50)))
		p.Limits[0].Rates[0].Window = limiter.Second
		apply(t, e, p)
		a := decide(t, e, "/").Admission
		time.Sleep(time.Second)
		if got := admit(t, e, 11, "/"); got != 10 {
			t.Errorf("admitted %d in the next window, want 10", got)
		}
		a.Settle(used("1"))
		if got := admit(t, e, 1, "/"); got != 0 {
			t.Error("what was reserved in one window was given back to another")
		}
		rows := e.Report(time.Now(), sessions.Add(1))[0].GetWindows()
		if len(rows) != 2 || rows[0].GetAdmitted() != 1 || rows[1].GetAdmitted() != 100 {
			t.Errorf("counted %v", rows)
		}
		e.Close(t.Context())
	})
}

// TestPaidUnitsAreCountedEvenIfTheRequestDoesNotPass: the debt of earlier requests was
// charged to the window all the same.
func TestPaidUnitsAreCountedEvenIfTheRequestDoesNotPass(t *testing.T) {
	windows := &limiter.Windows{N: 1}
	windows.Open[0] = limiter.OpenWindow{Rate: limiter.Rate{Limit: 9, Window: hour}, Index: 5}
	e := newEnforcer(t, nil, scripted(func(_ string, cost int64) (twotier.Decision, error) {
		return twotier.Decision{Allowed: cost == 1, Paid: 4, Windows: windows}, nil
	}))
	apply(t, e, policyOf(limitOf("admits", 9), limitOf("refuses", 9, func(l *policy.Limit) { l.Cost = &policy.Cost{Default: 2, Max: 2} })))
	if got := admit(t, e, 1, "/"); got != 0 {
		t.Fatal("admitted")
	}
	for _, limit := range []string{"admits", "refuses"} {
		if c := counted(e, limit); c.Admitted != 4 {
			t.Errorf("limit %s counted %d units, want the 4 that were paid", limit, c.Admitted)
		}
	}
}
