package plugin

import (
	"testing"

	"github.com/weir-dev/weir/api/v1alpha1"
	"github.com/weir-dev/weir/pkg/policy"
	"github.com/weir-dev/weir/pkg/store"
)

// TestKnownValues: values are named by those who may read them already.
func TestKnownValues(t *testing.T) {
	var p v1alpha1.RateLimitPolicy
	sample(t, "overrides.yaml", "shop", &p)
	known := knownValues(&p, "per-tenant", []string{"acme", "a%2Cb", "a,b"}, noBudgets)
	for hash, want := range map[string]string{
		store.HashValue(policy.MissingValue()): "(missing)",
		store.HashValue("gold"):                "gold",
		store.HashValue("trial"):               "trial",
		store.HashValue("acme"):                "acme",
		store.HashValue("a,b"):                 "a%2Cb",
	} {
		if known[hash] != want {
			t.Errorf("a value is called %q, want %q", known[hash], want)
		}
	}
	if n := len(known); n != 6 { // and platinum; the key has no two parts
		t.Errorf("%d values are known: %v", n, known)
	}
	if known := knownValues(&p, "absent", []string{"acme"}, noBudgets); len(known) != 1 {
		t.Errorf("a limit that is not there has the values %v", known)
	}
}
