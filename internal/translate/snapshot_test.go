package translate_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/weir-dev/weir/api/v1alpha1"
	"github.com/weir-dev/weir/internal/translate"
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
		wantErr string // empty: the snapshot is made of the others
	}{
		"that selects the pod fails, since leaving it out would lift its limits": {
			named(t, "shop", "bad", `{podSelector: {matchLabels: {app: checkout}}, `+broken),
			"RateLimitPolicy shop/bad: spec.limits[0].match[0].paths[0].value",
		},
		"whose selector cannot be read fails, since it might select the pod": {
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
			if tc.wantErr == "" {
				if err != nil || len(snapshot.Policies) != 1 || snapshot.Policies[0].Name != "good" {
					t.Errorf("Snapshot = %v, %v; want the good policy alone", snapshot, err)
				}
				return
			}
			if err == nil || !strings.Contains(err.Error(), tc.wantErr) {
				t.Errorf("Snapshot failed with %v, want %q", err, tc.wantErr)
			}
			if diff := cmp.Diff(policy.Snapshot{}, snapshot); diff != "" {
				t.Errorf("a failed snapshot is not empty (-want +got):\n%s", diff)
			}
		})
	}
}

func TestSnapshotOfABrokenPool(t *testing.T) {
	pool := defaultedPool(t, []byte(`{metadata: {name: bad, namespace: shop}, spec: {podSelector: {}, limit: {max: 0}}}`))
	snapshot, err := translate.Snapshot("east", []v1alpha1.RateLimitPolicy{named(t, "shop", "good", sound)}, nil, pool, "shop", nil)
	if want := "ConcurrencyPool shop/bad: "; err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("Snapshot failed with %v, want %q", err, want)
	}
	if diff := cmp.Diff(policy.Snapshot{}, snapshot); diff != "" {
		t.Errorf("a failed snapshot is not empty (-want +got):\n%s", diff)
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
