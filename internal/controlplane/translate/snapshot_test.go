package translate_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/weir-dev/weir/api/v1alpha1"
	"github.com/weir-dev/weir/internal/controlplane/translate"
	"github.com/weir-dev/weir/pkg/policy"
)

const (
	sound  = `{podSelector: {}, limits: [{name: all, rates: [{limit: 1000, window: 1s}]}]}`
	broken = `limits: [{name: all, match: [{paths: [{type: RegularExpression, value: "("}]}], rates: [{limit: 1, window: 1s}]}]}`
)

func named(t *testing.T, namespace, name, spec string) v1alpha1.RateLimitPolicy {
	t.Helper()
	return *defaulted(t, []byte(`{metadata: {name: `+name+`, namespace: `+namespace+`}, spec: `+spec+`}`))
}

func TestSnapshotOfABrokenPolicy(t *testing.T) {
	cases := map[string]struct {
		policy  v1alpha1.RateLimitPolicy
		wantErr string // empty: it has nothing to do with the pod
	}{
		"that selects the pod is left out and named": {
			named(t, "shop", "bad", `{podSelector: {matchLabels: {app: checkout}}, `+broken),
			"RateLimitPolicy shop/bad: spec.limits[0].match[0].paths[0].value",
		},
		"whose selector cannot be read is named, since it might select the pod": {
			named(t, "shop", "bad", `{podSelector: {matchExpressions: [{key: app, operator: Equals}]}, limits: [{name: all, rates: [{limit: 1, window: 1s}]}]}`),
			"RateLimitPolicy shop/bad: spec.podSelector.matchExpressions[0].operator",
		},
		"that selects other pods does not matter": {
			named(t, "shop", "bad", `{podSelector: {matchLabels: {app: cart}}, `+broken), "",
		},
		"of another namespace does not matter": {
			named(t, "other", "bad", `{podSelector: {}, `+broken), "",
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			all := []v1alpha1.RateLimitPolicy{named(t, "shop", "good", sound), tc.policy}
			snapshot, err := translate.Snapshot("east", all, nil, nil, "shop", map[string]string{"app": "checkout"})
			requireGoodAlone(t, snapshot)
			if tc.wantErr == "" {
				if err != nil {
					t.Errorf("Snapshot fails with %v", err)
				}
				return
			}
			requirePartial(t, err, tc.wantErr)
		})
	}
}

func TestSnapshotOfABrokenPool(t *testing.T) {
	pool := defaultedPool(t, []byte(`{metadata: {name: bad, namespace: shop}, spec: {podSelector: {}, limit: {max: 0}}}`))
	snapshot, err := translate.Snapshot("east", []v1alpha1.RateLimitPolicy{named(t, "shop", "good", sound)}, nil, []*v1alpha1.ConcurrencyPool{pool}, "shop", nil)
	requirePartial(t, err, "ConcurrencyPool shop/bad: ")
	requireGoodAlone(t, snapshot)
}

// TestSnapshotNamesAllThatIsLeftOut: a user who repairs the first should not have to wait to
// learn of the second.
func TestSnapshotNamesAllThatIsLeftOut(t *testing.T) {
	all := []v1alpha1.RateLimitPolicy{
		named(t, "shop", "bad", `{podSelector: {}, `+broken), named(t, "shop", "good", sound), named(t, "shop", "worse", `{podSelector: {}, `+broken),
	}
	snapshot, err := translate.Snapshot("east", all, nil, nil, "shop", nil)
	requirePartial(t, err, "RateLimitPolicy shop/bad: ", "RateLimitPolicy shop/worse: ")
	requireGoodAlone(t, snapshot)
}

func requirePartial(t *testing.T, err error, leftOut ...string) {
	t.Helper()
	if _, ok := errors.AsType[*translate.PartialError](err); !ok {
		t.Fatalf("Snapshot fails with %v, want a PartialError", err)
	}
	for _, name := range leftOut {
		if !strings.Contains(err.Error(), name) {
			t.Errorf("Snapshot fails with %v, want it to say %q", err, name)
		}
	}
}

// requireGoodAlone checks that what translates is all there is, and can be enforced.
func requireGoodAlone(t *testing.T, snapshot policy.Snapshot) {
	t.Helper()
	if len(snapshot.Policies) != 1 || snapshot.Policies[0].Name != "good" || snapshot.Pool != nil {
		t.Errorf("snapshot %v, want the good policy alone", snapshot)
	}
	if _, _, err := policy.Encode(snapshot); err != nil {
		t.Error(err)
	}
}

func TestSnapshotDoesNotDependOnTheOrderOfPolicies(t *testing.T) {
	a, b, c := named(t, "shop", "a", sound), named(t, "shop", "b", sound), named(t, "shop", "c", sound)
	given := []v1alpha1.RateLimitPolicy{c, a, b}
	before := []v1alpha1.RateLimitPolicy{*c.DeepCopy(), *a.DeepCopy(), *b.DeepCopy()}

	first := version(t, given)
	if second := version(t, []v1alpha1.RateLimitPolicy{b, c, a}); first != second {
		t.Errorf("versions %s and %s of the same policies differ", first, second)
	}
	if diff := cmp.Diff(before, given); diff != "" {
		t.Errorf("Snapshot changed its argument (-before +after):\n%s", diff)
	}
}

func version(t *testing.T, all []v1alpha1.RateLimitPolicy) string {
	t.Helper()
	snapshot, err := translate.Snapshot("east", all, nil, nil, "shop", nil)
	if err != nil {
		t.Fatal(err)
	}
	_, version, err := policy.Encode(snapshot)
	if err != nil {
		t.Fatal(err)
	}
	return version
}
