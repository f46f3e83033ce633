package translate_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/weir-dev/weir/api/v1alpha1"
	"github.com/weir-dev/weir/internal/controlplane/translate"
	"github.com/weir-dev/weir/pkg/limiter"
	"github.com/weir-dev/weir/pkg/policy"
	"github.com/weir-dev/weir/pkg/store"
)

func TestResetOf(t *testing.T) {
	p := defaulted(t, []byte(`{metadata: {name: p, namespace: shop, generation: 3}, spec: {podSelector: {}, limits: [
		{name: all, rates: [{limit: 5, window: 24h}]},
		{name: user, key: {parts: [{type: Header, header: {name: x-user}}]}, rates: [{limit: 6, window: 24h}],
		 overrides: [{values: [{parts: [gold]}], rates: [{limit: 7, window: 24h}]}]},
		{name: pair, key: {parts: [{type: Header, header: {name: x-user}}, {type: ClientIP}]}, rates: [{limit: 8, window: 24h}]},
		{name: world, scope: Federated, budgetRef: {name: world}}]}}`))
	world := defaultedBudget(t, []byte(`{metadata: {name: world, namespace: shop}, spec: {id: acme/world, rate: {limit: 100, window: 24h}, members: [{name: eu-west}]}}`))
	translated, err := translate.Policy(p, counting(world))
	if err != nil {
		t.Fatal(err)
	}
	for request, want := range map[string]struct {
		limit string
		value policy.Value
		err   string
	}{
		"all@2026-11-23T10:00:00Z": {"all", nil, ""},
		"user=alice@1":             {"user", policy.Value{"alice"}, ""},
		"user=alice@example.com@1": {"user", policy.Value{"alice@example.com"}, ""},
		"user=a%2Cb%25=c@1":        {"user", policy.Value{"a,b%=c"}, ""},
		"user=gold@1":              {"user", policy.Value{"gold"}, ""},
		"pair=bob,2001:db8::0:1@1": {"pair", policy.Value{"bob", "2001:db8::/64"}, ""},
		"all":                      {err: "write limit@request or limit=value@request"},
		"all@":                     {err: "write limit@request or limit=value@request"},
		"some@1":                   {err: `there is no limit "some": the policy has all, user, pair, world`},
		"all=alice@1":              {err: "leave the value out, as in all@request"},
		"user@1":                   {"user", nil, ""},
		"pair=bob@1":               {err: "the value has 1 parts, but the key of limit pair has 2"},
		"pair=bob,nowhere@1":       {err: "nowhere"},
		"user=%zz@1":               {err: "write %25 for a percent sign"},
		"world@1":                  {err: "draws from FederatedBudget world"},
	} {
		t.Run(request, func(t *testing.T) {
			p.Annotations = map[string]string{v1alpha1.ResetAnnotation: request}
			got, err := translate.ResetOf(p, &translated)
			if want.err != "" {
				if err == nil || !strings.Contains(err.Error(), want.err) {
					t.Errorf("error %v, want one that says %q", err, want.err)
				}
				return
			}
			var hash *string
			if want.value != nil {
				hash = new(store.HashValue(policy.JoinParts(want.value...)))
			}
			if diff := cmp.Diff(translate.Reset{Limit: want.limit, Hash: hash}, got); diff != "" || err != nil {
				t.Errorf("%v; (-want +got):\n%s", err, diff)
			}
		})
	}
}

// TestPodsHearOfAReset, or they would go on refusing what they remember as refused.
func TestPodsHearOfAReset(t *testing.T) {
	p := defaulted(t, []byte(`{metadata: {name: p, namespace: shop}, spec: {podSelector: {}, limits: [{name: all, rates: [{limit: 5, window: 24h}]}]}}`))
	at := metav1.NewMicroTime(time.UnixMicro(1_800_000_000_000_007))
	p.Status.Reset = &v1alpha1.ResetStatus{Request: "all@1", Phase: v1alpha1.ResetDone, At: &at}
	translated, err := translate.Policy(p, nil)
	if err != nil || translated.ResetAt != limiter.Instant(1_800_000_000_000_007) {
		t.Errorf("reset at %d, %v", translated.ResetAt, err)
	}
}
