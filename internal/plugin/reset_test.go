package plugin

import (
	"strings"
	"testing"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/weir-dev/weir/api/v1alpha1"
)

// TestReset: the annotation is one that the controller carries out, and a new one each time.
func TestReset(t *testing.T) {
	createNamespace(t)
	var p v1alpha1.RateLimitPolicy
	sample(t, "overrides.yaml", "shop", &p)
	create(t, &p, func() {})
	annotation := func() string {
		if err := server.Get(t.Context(), client.ObjectKeyFromObject(&p), &p); err != nil {
			t.Fatal(err)
		}
		return p.Annotations[v1alpha1.ResetAnnotation]
	}
	out, errs := run(t, "reset", "-n", "shop", p.Name, "per-tenant")
	first := annotation()
	if !strings.HasPrefix(first, "per-tenant@2") || !strings.Contains(out, "asked to set back overrides/per-tenant") || !strings.Contains(errs, "{.status.reset}") {
		t.Errorf("the annotation is %q; it prints %q and %q", first, out, errs)
	}
	run(t, "reset", "-n", "shop", p.Name, "per-tenant", "--value", "gold%2C1")
	if second := annotation(); !strings.HasPrefix(second, "per-tenant=gold%2C1@2") || second[strings.LastIndex(second, "@"):] == first[strings.LastIndex(first, "@"):] {
		t.Errorf("the annotation is %q after %q", second, first)
	}
	kept := annotation()
	for want, args := range map[string][]string{
		"the policy has per-tenant":    {p.Name, "absent"},
		"the value has 2 parts":        {p.Name, "per-tenant", "--value", "a,b"},
		"choose another with -n":       {"absent", "per-tenant"},
		"accepts 2 arg(s), received 1": {p.Name},
	} {
		if _, _, err := execute(t, append([]string{"reset", "-n", "shop", "--kubeconfig", kubeconfig}, args...)...); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v: error %v, want one with %q", args, err, want)
		}
	}
	if got := annotation(); got != kept {
		t.Errorf("a request that is refused wrote %q", got)
	}
}
