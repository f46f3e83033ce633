package plugin

import (
	"strings"
	"testing"

	"github.com/weir-dev/weir/api/v1alpha1"
)

// TestCompletion asks as the script of a shell does.
func TestCompletion(t *testing.T) {
	createNamespace(t)
	createPod(t, sidecarIn(t, running("checkout-1")))
	createPod(t, running("checkout-3"))
	var p v1alpha1.RateLimitPolicy
	sample(t, "keyed.yaml", "shop", &p)
	create(t, &p, func() {})
	var pool v1alpha1.ConcurrencyPool
	sample(t, "pool-quickstart.yaml", "shop", &pool)
	create(t, &pool, func() {})
	world(t)
	for want, args := range map[string][]string{
		"checkout-1\n:4\n":                   {"explain", "--request", "GET /", ""},
		"keyed\n:4\n":                        {"top", ""},
		"checkout-world\n:4\n":               {"budget", "status", ""},
		"cpool/checkout\nrlp/keyed\n:4\n":    {"brake", ""},
		"common\ncombined\nenvoy-json\n:4\n": {"simulate", "--format", ""},
		":4\n":                               {"reset", "keyed", ""},
	} {
		all := append([]string{"__complete"}, args[:len(args)-1]...)
		if args[0] != "simulate" {
			all = append(all, "--kubeconfig", kubeconfig, "-n", "shop")
		}
		out, _, err := execute(t, append(all, args[len(args)-1])...)
		if err != nil || out != want {
			t.Errorf("%v completes\n%s(%v), want\n%s", args, out, err, want)
		}
	}
	if out, _, err := execute(t, "__complete", "explain", "--kubeconfig", "absent", ""); err != nil || !strings.Contains(out, ":1\n") {
		t.Errorf("without a cluster it completes %q (%v)", out, err)
	}
}
