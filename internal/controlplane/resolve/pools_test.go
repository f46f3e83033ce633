package resolve_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/weir-dev/weir/api/v1alpha1"
	"github.com/weir-dev/weir/internal/controlplane/resolve"
)

var (
	monday, tuesday = time.Unix(1_800_000_000, 0), time.Unix(1_800_086_400, 0)
	checkout, cart  = map[string]string{"app": "checkout"}, map[string]string{"app": "cart"}
)

// expressing returns a pool that selects by expressions.
func expressing(name string, created time.Time, expressions ...metav1.LabelSelectorRequirement) *v1alpha1.ConcurrencyPool {
	p := pooled(name, created, nil)
	p.Spec.PodSelector.MatchExpressions = expressions
	return p
}

func requirement(key string, operator metav1.LabelSelectorOperator, values ...string) metav1.LabelSelectorRequirement {
	return metav1.LabelSelectorRequirement{Key: key, Operator: operator, Values: values}
}

func TestPools(t *testing.T) {
	elsewhere := pooled("elsewhere", monday, checkout)
	elsewhere.Namespace = "bank"
	tests := map[string]struct {
		pools []*v1alpha1.ConcurrencyPool
		want  []string
	}{
		"no pool selects the pod":                     {pools: []*v1alpha1.ConcurrencyPool{pooled("cart", monday, cart), elsewhere}},
		"one pool does":                               {pools: []*v1alpha1.ConcurrencyPool{pooled("cart", monday, cart), pooled("b", tuesday, checkout)}, want: []string{"b"}},
		"the older one wins":                          {pools: []*v1alpha1.ConcurrencyPool{pooled("a", tuesday, checkout), pooled("b", monday, nil)}, want: []string{"b", "a"}},
		"of one second the first name wins":           {pools: []*v1alpha1.ConcurrencyPool{pooled("b", monday, checkout), pooled("a", monday, checkout)}, want: []string{"a", "b"}},
		"one that is not created yet loses":           {pools: []*v1alpha1.ConcurrencyPool{pooled("a", time.Time{}, checkout), pooled("b", tuesday, checkout)}, want: []string{"b", "a"}},
		"one that cannot be read may select anything": {pools: []*v1alpha1.ConcurrencyPool{pooled("a", tuesday, checkout), expressing("broken", monday, requirement("app", "Equals", "x"))}, want: []string{"broken", "a"}},
		"expressions select":                          {pools: []*v1alpha1.ConcurrencyPool{expressing("a", monday, requirement("app", metav1.LabelSelectorOpIn, "cart", "checkout")), expressing("b", monday, requirement("app", metav1.LabelSelectorOpNotIn, "checkout"))}, want: []string{"a"}},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			var all []v1alpha1.ConcurrencyPool
			for _, p := range tc.pools {
				all = append(all, *p)
			}
			var got []string
			for _, p := range resolve.Pools(all, "shop", checkout) {
				got = append(got, p.Name)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("pools in the order of precedence (-want +got):\n%s", diff)
			}
		})
	}
}

// matching returns the pool about some requests.
func matching(p *v1alpha1.ConcurrencyPool) *v1alpha1.ConcurrencyPool {
	p.Spec.Match = []v1alpha1.Match{{Methods: []v1alpha1.Method{"GET"}}}
	return p
}

func TestApplying(t *testing.T) {
	several := func(n int, first ...*v1alpha1.ConcurrencyPool) []*v1alpha1.ConcurrencyPool {
		for i := range n {
			first = append(first, matching(pooled(fmt.Sprint("m", i), monday, checkout)))
		}
		return first
	}
	all := func(name string) *v1alpha1.ConcurrencyPool { return pooled(name, monday, checkout) }
	for name, tc := range map[string]struct {
		selecting []*v1alpha1.ConcurrencyPool
		want      string
	}{
		"none":                           {nil, ""},
		"one of all requests":            {several(0, all("a")), "a"},
		"only one of all requests":       {several(0, all("a"), all("b")), "a"},
		"each of some requests":          {several(2, all("a"), all("b")), "a m0 m1"},
		"eight":                          {several(7, all("a")), "a m0 m1 m2 m3 m4 m5 m6"},
		"more than eight":                {several(9), "m0 m1 m2 m3 m4 m5 m6 m7"},
		"one of all behind eight others": {append(several(8), all("a")), "m0 m1 m2 m3 m4 m5 m6 m7"},
		"one that does not count":        {several(7, all("a"), all("b")), "a m0 m1 m2 m3 m4 m5 m6"},
	} {
		t.Run(name, func(t *testing.T) {
			var got []string
			for _, p := range resolve.Applying(tc.selecting) {
				got = append(got, p.Name)
			}
			if strings.Join(got, " ") != tc.want {
				t.Errorf("applying are %v, want %s", got, tc.want)
			}
		})
	}
}

func TestRivals(t *testing.T) {
	elsewhere := pooled("elsewhere", monday, checkout)
	elsewhere.Namespace = "bank"
	tests := map[string]struct {
		pool  *v1alpha1.ConcurrencyPool
		other *v1alpha1.ConcurrencyPool
		both  map[string]string // nil: they are not rivals
	}{
		"the same labels":                        {pooled("p", monday, checkout), pooled("q", monday, checkout), checkout},
		"other labels":                           {pooled("p", monday, checkout), pooled("q", monday, cart), nil},
		"every pod and some":                     {pooled("p", monday, nil), pooled("q", monday, cart), cart},
		"every pod, twice":                       {pooled("p", monday, nil), pooled("q", monday, nil), map[string]string{}},
		"a part of the other's pods":             {pooled("p", monday, map[string]string{"app": "checkout", "tier": "web"}), pooled("q", monday, checkout), map[string]string{"app": "checkout", "tier": "web"}},
		"labels that have nothing to do":         {pooled("p", monday, checkout), pooled("q", monday, map[string]string{"tier": "web"}), nil},
		"one of several values":                  {expressing("p", monday, requirement("app", metav1.LabelSelectorOpIn, "checkout", "cart")), pooled("q", monday, cart), cart},
		"a label with any value":                 {expressing("p", monday, requirement("app", metav1.LabelSelectorOpExists)), pooled("q", monday, cart), cart},
		"a label with any value, twice":          {expressing("p", monday, requirement("app", metav1.LabelSelectorOpExists)), expressing("q", monday, requirement("app", metav1.LabelSelectorOpExists)), map[string]string{"app": ""}},
		"pods without the label":                 {expressing("p", monday, requirement("app", metav1.LabelSelectorOpDoesNotExist)), pooled("q", monday, checkout), nil},
		"a label and an expression on it":        {expressing("p", monday, requirement("app", metav1.LabelSelectorOpIn, "cart"), requirement("app", metav1.LabelSelectorOpExists)), pooled("q", monday, cart), cart},
		"a pool about some requests":             {matching(pooled("p", monday, checkout)), pooled("q", monday, checkout), nil},
		"and another one":                        {pooled("p", monday, checkout), matching(pooled("q", monday, checkout)), nil},
		"the same labels in another namespace":   {pooled("p", monday, checkout), elsewhere, nil},
		"the pool itself as it was, or would be": {pooled("p", monday, checkout), pooled("p", monday, nil), nil},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			rivals := resolve.Rivals([]v1alpha1.ConcurrencyPool{*tc.other}, tc.pool)
			if tc.both == nil {
				if len(rivals) > 0 {
					t.Errorf("they share pods with labels %v, want none", rivals[0].Both)
				}
				return
			}
			if len(rivals) != 1 || rivals[0].Pool.Name != tc.other.Name {
				t.Fatalf("rivals are %v, want %s", rivals, tc.other.Name)
			}
			if diff := cmp.Diff(tc.both, rivals[0].Both); diff != "" {
				t.Errorf("labels of pods that both select (-want +got):\n%s", diff)
			}
		})
	}
}

func TestThePoolOfAPod(t *testing.T) {
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "checkout-0", UID: "uid-0", Labels: checkout}}
	credentials := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "redis", ResourceVersion: "7"}}
	remote := pooled("remote", monday, checkout)
	remote.Spec.Coordinator = v1alpha1.Store{Type: v1alpha1.RedisStoreType, Redis: &v1alpha1.RedisStore{
		Address: "redis:6379", TLS: v1alpha1.TLSDisabled, SecretRef: &v1alpha1.SecretReference{Name: "redis"},
	}}
	broken := func(created time.Time) *v1alpha1.ConcurrencyPool {
		p := pooled("broken", created, checkout)
		p.Spec.Limit.Max = 0
		return p
	}
	tests := map[string]struct {
		pools       []client.Object
		want        string // name of the pool, empty for none
		wantVersion string // of its credentials
		wantErr     string
	}{
		"there is none":                       {},
		"none selects it":                     {pools: []client.Object{pooled("cart", monday, cart)}},
		"the oldest that selects it":          {pools: []client.Object{pooled("a", tuesday, checkout), pooled("b", monday, nil), pooled("c", time.Unix(1, 0), cart)}, want: "b"},
		"one with credentials":                {pools: []client.Object{remote}, want: "remote", wantVersion: "7"},
		"one that is broken holds up all":     {pools: []client.Object{broken(monday), pooled("a", tuesday, checkout)}, wantErr: "ConcurrencyPool shop/broken: "},
		"one that is broken and does not win": {pools: []client.Object{broken(tuesday), pooled("a", monday, checkout)}, want: "a"},
	}
	some := matching(remote.DeepCopy())
	some.Name = "some"
	known := cache(t, pooled("b", tuesday, checkout), some, pod, credentials)
	resolver := resolve.ByPod{ByLabels: resolve.ByLabels{Cluster: "c", Cache: known}, Secrets: resolve.NewSecrets(known), Keys: new(resolve.Keys)}
	snapshot, err := resolved(t, resolver, "checkout-0", "uid-0")
	if err != nil || snapshot.Pool == nil || snapshot.Pool.Name != "b" || len(snapshot.Pools) != 1 || snapshot.Pools[0].Name != "some" || snapshot.Pools[0].Coordinator.SecretVersion != "7" {
		t.Errorf("beside a pool of all requests one of some: %+v, %v", snapshot, err)
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			known := cache(t, append(tc.pools, pod, credentials)...)
			resolver := resolve.ByPod{ByLabels: resolve.ByLabels{Cluster: "c", Cache: known}, Secrets: resolve.NewSecrets(known), Keys: new(resolve.Keys)}
			snapshot, err := resolved(t, resolver, "checkout-0", "uid-0")
			if tc.wantErr != "" || err != nil {
				if err == nil || tc.wantErr == "" || !strings.Contains(err.Error(), tc.wantErr) {
					t.Errorf("error is %v, want one that says %q", err, tc.wantErr)
				}
				return
			}
			var got, version string
			if snapshot.Pool != nil {
				got, version = snapshot.Pool.Name, snapshot.Pool.Coordinator.SecretVersion
			}
			if got != tc.want || version != tc.wantVersion {
				t.Errorf("the pool is %q with credentials %q, want %q with %q", got, version, tc.want, tc.wantVersion)
			}
		})
	}
}
