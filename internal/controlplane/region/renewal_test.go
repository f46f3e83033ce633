package region

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil"
	"k8s.io/apimachinery/pkg/types"

	"github.com/weir-dev/weir/internal/controlplane/hub"
	"github.com/weir-dev/weir/pkg/limiter"
	"github.com/weir-dev/weir/pkg/policy"
	"github.com/weir-dev/weir/pkg/store"
)

var errAway = &store.Failure{Why: "no route", Cause: errors.New("TOPSECRET")}

// A certificate lasts that long from when it is made, and is due in time.
const due, life = 20 * time.Minute, time.Hour

// ofHub returns a budget that a hub keeps.
func ofHub() policy.FederatedBudget {
	b := at(own("acme/checkout", 100), "hub:1")
	b.Params.Window = 60 * limiter.Second
	return b
}

// certified starts a member of a hub.
func certified(t *testing.T, change ...func(*world)) *world {
	t.Helper()
	w := start(t)
	made := map[string]time.Time{}
	w.mu.Lock()
	w.life = func(version string) (from, until time.Time) {
		if made[version].IsZero() {
			made[version] = time.Now()
		}
		return made[version].Add(due), made[version].Add(life)
	}
	for _, c := range change {
		c(w)
	}
	w.mu.Unlock()
	w.has(ofHub())
	return w
}

// asked returns how often a certificate was asked for.
func (w *world) asked() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(w.renewed)
}

// change changes what the world does.
func (w *world) change(f func(*world)) {
	w.mu.Lock()
	defer w.mu.Unlock()
	f(w)
}

func TestACertificateIsRenewedAtTwoThirdsOfItsLife(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := certified(t)
		defer w.end()
		time.Sleep(due - 10*time.Second)
		if n := w.asked(); n != 0 {
			t.Fatalf("asked for another %d times before it is time", n)
		}
		for range 3 {
			time.Sleep(20 * time.Second)
			w.takes(ofHub(), 5)
			seen := w.set.Observe("shop", "budget").Certificate
			if seen.Problem != "" || seen.Ends.Before(time.Now().Add(life/2)) {
				t.Errorf("seen %+v at %v", seen, time.Now())
			}
			time.Sleep(due - 20*time.Second)
		}
		if n := w.asked(); n != 3 && n != 4 {
			t.Errorf("asked %d times in three lives, want once in each", n)
		}
		if shut := w.shut(); !slices.Contains(shut, "hub:1@1") || !slices.Contains(shut, "hub:1@1+") {
			t.Errorf("closed %v: the new certificate takes the place of the old", shut)
		}
	})
}

// TestAHubThatIsAwayIsAskedAgain less and less often, and the certificate stays in use.
func TestAHubThatIsAwayIsAskedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := certified(t, func(w *world) { w.refusal = errAway })
		defer w.end()
		before := w.changes()
		time.Sleep(due + 30*time.Minute)
		w.change(func(w *world) {
			var last time.Duration
			for i := range w.renewed[1:] {
				pause := w.renewed[i+1].Sub(w.renewed[i])
				if pause < last || pause < firstRenewPause || pause > longestRenewPause+2*followEvery {
					t.Errorf("try %d came %v after the one before, that after %v", i+1, pause, last)
				}
				last = pause - 2*followEvery // the Set looks only so often
			}
			if n := len(w.renewed); n < 7 || n > 12 {
				t.Errorf("asked %d times in half an hour", n)
			}
		})
		if got := w.set.Observe("shop", "budget").Certificate.Problem; got != errAway.Why {
			t.Errorf("the problem is %q", got)
		}
		w.mu.Lock()
		if !slices.Contains(w.changed[before:], types.NamespacedName{Namespace: "shop", Name: "budget"}) {
			t.Error("nobody was called about the problem")
		}
		w.mu.Unlock()
		w.takes(ofHub(), 5)
		w.change(func(w *world) { w.refusal = nil })
		time.Sleep(longestRenewPause + settleTime)
		if got := w.set.Observe("shop", "budget").Certificate; got.Problem != "" || got.Ends.Before(time.Now().Add(life/2)) {
			t.Errorf("seen %+v after the hub came back", got)
		}
	})
}

// TestASecretThatCannotBeWrittenIsReported, and breaks nothing.
func TestASecretThatCannotBeWrittenIsReported(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := certified(t, func(w *world) { w.unkept = errors.New("it is immutable") })
		defer w.end()
		time.Sleep(due + time.Minute)
		if got := w.set.Observe("shop", "budget").Certificate.Problem; got != "it is immutable" {
			t.Errorf("the problem is %q", got)
		}
		w.takes(ofHub(), 5)
		w.secret("shop/hub", "by hand")
		time.Sleep(2 * followEvery)
		if got := w.set.Observe("shop", "budget").Certificate; got.Problem != "" {
			t.Errorf("seen %+v after somebody renewed it by hand", got)
		}
	})
}

// TestASecretThatIsPutBackIsNotFoughtOver: the tool that manages it wins.
func TestASecretThatIsPutBackIsNotFoughtOver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := certified(t, func(w *world) { w.undoes = true })
		defer w.end()
		time.Sleep(due + 30*time.Minute)
		if n := w.asked(); n != 1 {
			t.Errorf("asked %d times", n)
		}
		if got := w.set.Observe("shop", "budget").Certificate.Problem; !strings.Contains(got, "put the one before back") {
			t.Errorf("the problem is %q", got)
		}
	})
}

// TestAnEndedCertificateIsNotRenewed: no hub listens to it any more.
func TestAnEndedCertificateIsNotRenewed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := certified(t, func(w *world) { w.refusal = errAway })
		defer w.end()
		time.Sleep(life + time.Minute)
		n := w.asked()
		time.Sleep(due)
		if w.asked() != n {
			t.Error("an ended certificate is shown to the hub")
		}
	})
}

// TestTheEndDoesNotWaitForARenewal that the hub does not answer.
func TestTheEndDoesNotWaitForARenewal(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := certified(t, func(w *world) {
			w.life = func(string) (from, until time.Time) { return time.Now(), time.Now().Add(time.Hour) }
		})
		time.Sleep(followEvery)
		before := time.Now()
		w.end()
		if took := time.Since(before); took > closeTime {
			t.Errorf("it took %v", took)
		}
	})
}

func TestCertificatesOfMembersAreExported(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var exported Certificates
		w := certified(t)
		defer w.end()
		if n := testutil.CollectAndCount(&exported); n != 0 {
			t.Errorf("%d certificates while nothing runs", n)
		}
		end := exported.of(w.set)
		want := `
# HELP weir_certificate_expiry_timestamp_seconds When the certificate that this replica uses ends, in Unix time.
# TYPE weir_certificate_expiry_timestamp_seconds gauge
weir_certificate_expiry_timestamp_seconds{certificate="member",secret="shop/hub"} 9.46688402e+08
`
		if err := testutil.CollectAndCompare(&exported, strings.NewReader(want)); err != nil {
			t.Error(err)
		}
		end()
		if n := testutil.CollectAndCount(&exported); n != 0 {
			t.Errorf("%d certificates after the end", n)
		}
	})
}

var _ Hub = (*hub.Client)(nil)
