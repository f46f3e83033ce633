package enforce_test

import (
	"testing"
	"time"

	"github.com/weir-dev/weir/internal/sidecar/enforce"
	"github.com/weir-dev/weir/pkg/policy"
)

// TestALimitThatMatchesNothingIsReported with the time over which requests came, until one is
// matched or it is asked by name, and again when its policy changes.
func TestALimitThatMatchesNothingIsReported(t *testing.T) {
	e := newEnforcer(t, newStore(frozen))
	p := policyOf(limitOf("orders", 100, under("/orders")), limitOf("all", 100))
	other := policyOf(limitOf("all", 100))
	other.Name = "other"
	apply(t, e, p, other)
	now := time.Now()
	reports := func(of string, matched bool, unmatched time.Duration) {
		t.Helper()
		for _, r := range e.Report(now, sessions.Add(1)) {
			if r.GetPolicy() == "checkout" && r.GetLimit() == of && (r.GetMatched() != matched || r.GetUnmatchedMicros() != unmatched.Microseconds()) {
				t.Errorf("limit %s: matched %t, unmatched for %d µs, want %t and %s", of, r.GetMatched(), r.GetUnmatchedMicros(), matched, unmatched)
			}
		}
	}
	passes := func(line string) {
		t.Helper()
		if got := admit(t, e, 1, line); got != 1 {
			t.Fatal("a request was refused")
		}
	}
	reports("orders", false, 0)
	now = now.Add(2 * time.Hour) // without a request
	reports("orders", false, 0)
	passes("/")
	reports("orders", false, 0)
	now = now.Add(time.Hour)
	reports("orders", false, 0)
	passes("/other")
	reports("orders", false, time.Hour)
	reports("all", true, 0)

	other.Generation++ // another policy's edit does not matter
	apply(t, e, p, other)
	reports("orders", false, time.Hour)
	p.Generation++
	apply(t, e, p, other)
	reports("orders", false, 0)
	reports("all", false, 0)

	now = now.Add(time.Minute)
	passes("/")
	reports("all", true, 0)
	now = now.Add(time.Minute)
	passes("/orders/7")
	reports("orders", true, 0)
	passes("/")
	reports("orders", true, 0)
}

// TestALimitThatIsAskedByNameIsUsed, whatever its match is.
func TestALimitThatIsAskedByNameIsUsed(t *testing.T) {
	e := newEnforcer(t, newStore(frozen))
	apply(t, e, policyOf(limitOf("orders", 100, under("/orders"))))
	if _, err := e.Check(t.Context(), enforce.Query{Policy: "checkout", Limit: "orders", Cost: 1}); err != nil {
		t.Fatal(err)
	}
	if r := e.Report(time.Now(), sessions.Add(1))[0]; !r.GetMatched() {
		t.Error("it is reported as one that matched nothing")
	}
}

// TestDescriptorsAreMatchedLikeRequests.
func TestDescriptorsAreMatchedLikeRequests(t *testing.T) {
	e := newEnforcer(t, newStore(frozen))
	apply(t, e, policyOf(limitOf("orders", 100, func(l *policy.Limit) {
		l.Match = []policy.Match{{Descriptors: []policy.DescriptorMatch{{Key: "route", Value: "orders"}}}}
	})))
	for i, value := range []string{"other", "other", "orders"} {
		d := enforce.Descriptor{Request: policy.NewDescriptor([]policy.Entry{{Key: "route", Value: value}}), Hits: 1}
		if _, err := e.DecideDescriptors(t.Context(), "", []enforce.Descriptor{d}); err != nil {
			t.Fatal(err)
		}
		r := e.Report(time.Now().Add(time.Duration(i)*time.Hour), sessions.Add(1))[0]
		if matched := value == "orders"; r.GetMatched() != matched || r.GetUnmatchedMicros() > 0 != (i == 1) {
			t.Errorf("call %d: matched %t, unmatched for %d µs", i, r.GetMatched(), r.GetUnmatchedMicros())
		}
	}
}
