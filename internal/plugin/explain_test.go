package plugin

import (
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/weir-dev/weir/internal/sidecar/enforce"
	"github.com/weir-dev/weir/pkg/policy"
)

// seconds are what is left of 42, which passes by the clock of this machine.
var seconds = regexp.MustCompile(`\b\d\ds\b`)

// TestExplain asks a sidecar through a real API server, and compares the output with the page that
// documents it.
func TestExplain(t *testing.T) {
	snapshot := checkout(
		policy.Limit{Name: "all", Rates: minutely(500)},
		policy.Limit{Name: "per-user", Rates: minutely(20), Key: byUser(policy.Skip)},
		policy.Limit{Name: "uploads", Rates: minutely(5), Match: []policy.Match{{Methods: []string{"PUT"}}}},
	)
	state := withPool(t, &snapshot, 40, 3)
	a := answer(t, enforce.Enforce, snapshot, state)
	if n := a.spend(t, 25, "POST /v1/orders", "x-user: ann"); n != 20 {
		t.Fatalf("%d requests are admitted, want 20", n)
	}
	node(t, a.handler)
	createNamespace(t)
	pod := sidecarIn(t, running("checkout-1"))
	pod.Spec.NodeName = "worker"
	createPod(t, pod)
	bare := running("checkout-3")
	createPod(t, bare)

	args := []string{"explain", "-n", "shop", "checkout-1", "--request", "POST /v1/orders", "-H", "x-user: ann"}
	table, stderr := run(t, args...)
	if stderr != "The pod refuses this request now.\n" {
		t.Errorf("it prints the verdict %q", stderr)
	}
	page, err := os.ReadFile(filepath.Join("..", "..", "docs", "kubectl.md"))
	if err != nil {
		t.Fatal(err)
	}
	var trimmed strings.Builder
	for line := range strings.Lines(table) {
		trimmed.WriteString(strings.TrimRight(line, " \n") + "\n")
	}
	want := "-H 'x-user: ann'\n" + trimmed.String() + stderr + "```\n"
	if !strings.Contains(seconds.ReplaceAllString(string(page), "42s"), seconds.ReplaceAllString(want, "42s")) {
		t.Errorf("docs/kubectl.md lacks:\n%s", want)
	}
	text, _ := run(t, append(args, "-o", "json")...)
	var found explanation
	if err := json.Unmarshal([]byte(text), &found); err != nil || found.Answer != refuses || len(found.Items) != 4 {
		t.Errorf("JSON is %s (%v)", text, err)
	}

	for name, wrong := range map[string][]string{
		"checkout-3 has no sidecar":    {"checkout-3", "--request", "GET /"},
		"choose another with -n":       {"absent", "--request", "GET /"},
		"use 'METHOD TARGET'":          {"checkout-1", "--request", "GET"},
		"use an IP address":            {"checkout-1", "--request", "GET /", "--client", "here"},
		`"request" not set`:            {"checkout-1"},
		"accepts 1 arg(s), received 0": {"--request", "GET /"},
	} {
		var out, errs strings.Builder
		err := Execute(t.Context(), append([]string{"explain", "-n", "shop", "--kubeconfig", kubeconfig}, wrong...), &out, &errs)
		if err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("%v: error %v, want one with %q", wrong, err, name)
		}
	}
}
