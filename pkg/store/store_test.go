package store_test

import (
	"context"
	"errors"
	"testing"

	"github.com/weir-dev/weir/pkg/store"
)

func TestWeakerGuaranteeWins(t *testing.T) {
	hard := store.Guarantee{Grade: store.Hard}
	split := store.Guarantee{Grade: store.HardExceptSplitBrain, Reason: "replicas"}
	best := store.Guarantee{Grade: store.BestEffort, Reason: "eviction"}
	for name, c := range map[string]struct{ a, b, want store.Guarantee }{
		"the second":              {hard, split, split},
		"the first":               {best, split, best},
		"the first of equals":     {best, store.Guarantee{Grade: store.BestEffort, Reason: "later"}, best},
		"an unknown grade":        {hard, store.Guarantee{Grade: "?"}, store.Guarantee{Grade: "?"}},
		"hard, when both are":     {hard, hard, hard},
		"the weaker, given first": {split, hard, split},
	} {
		if got := c.a.Weaker(c.b); got != c.want {
			t.Errorf("%s: got %+v, want %+v", name, got, c.want)
		}
	}
}

func TestDifferentCountersHaveDifferentKeys(t *testing.T) {
	scope := store.Scope{Cluster: "c", Namespace: "n", Policy: "p", Limit: "l"}
	for _, other := range []store.Key{
		{Scope: scope, Hash: store.HashValue("")},
		{Scope: scope, Hash: store.HashValue("x")},
		{Scope: store.Scope{Cluster: "c", Namespace: "n", Policy: "p-l", Limit: ""}},
		{Scope: store.Scope{Cluster: "c", Namespace: "n-p", Policy: "l", Limit: ""}},
	} {
		if got := other.String(); got == (store.Key{Scope: scope}).String() {
			t.Errorf("%+v has the key %q of another counter", other, got)
		}
	}
	if a, b := store.HashValue("a"), store.HashValue("b"); a == b || len(a) != 32 {
		t.Errorf("values hash to %q and %q", a, b)
	}
}

func TestUnavailableErrorNamesStoreAndCause(t *testing.T) {
	err := error(&store.UnavailableError{Store: "redis at cache:6379", Cause: context.DeadlineExceeded})
	if err.Error() != "redis at cache:6379: context deadline exceeded" || !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("error is %q", err)
	}
}
