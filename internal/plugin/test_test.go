package plugin

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"k8s.io/utils/ptr"
)

// offline runs test without a cluster.
func offline(t *testing.T, args ...string) (stdout, stderr string, err error) {
	t.Helper()
	var out, errs strings.Builder
	err = Execute(t.Context(), append([]string{"test"}, args...), &out, &errs)
	return out.String(), errs.String(), err
}

// fileOf writes a file that a test needs.
func fileOf(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "file.yaml")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func samplePath(name string) string { return filepath.Join("..", "..", "config", "samples", name) }

func TestSamplesAreValid(t *testing.T) {
	files, err := filepath.Glob(samplePath("*.yaml"))
	if err != nil || len(files) < 30 {
		t.Fatalf("config/samples has %d files (%v)", len(files), err)
	}
	for _, file := range files {
		_, stderr, err := offline(t, "-f", file)
		if doubtful := strings.Contains(stderr, "Warning: "); err != nil || doubtful != (filepath.Base(file) == "federated-policy.yaml") {
			t.Errorf("%s: error %v, and %s", file, err, stderr)
		}
	}
}

// TestTest compares the output of test with the page that documents it.
func TestTest(t *testing.T) {
	page, err := os.ReadFile(filepath.Join("..", "..", "docs", "kubectl.md"))
	if err != nil {
		t.Fatal(err)
	}
	args := []string{"-f", samplePath("keyed.yaml"), "--request", "POST /v1/orders", "--request", "GET /v1/orders", "-H", "x-tenant: acme"}
	table, _, err := offline(t, args...)
	if err != nil {
		t.Fatal(err)
	}
	var trimmed strings.Builder
	for line := range strings.Lines(table) {
		trimmed.WriteString(strings.TrimRight(line, " \n") + "\n")
	}
	if want := "-H 'x-tenant: acme'\n" + trimmed.String() + "```\n"; !strings.Contains(string(page), want) {
		t.Errorf("docs/kubectl.md lacks:\n%s", want)
	}
	text, _, err := offline(t, append(args, "-o", "json")...)
	var list testList
	if err != nil || json.Unmarshal([]byte(text), &list) != nil || len(list.Items) != 2 || ptr.Deref(list.Items[0].Value, "") != "acme" {
		t.Errorf("JSON is %s (%v)", text, err)
	}
}

func TestResults(t *testing.T) {
	for name, tc := range map[string]struct {
		sample string
		args   []string
		want   string // in the table
	}{
		"a part of the key is missing":  {"keyed.yaml", []string{"--request", "PUT /v1/orders"}, "rejected"},
		"a limit that does not apply":   {"any-of.yaml", []string{"--request", "GET /"}, "per-tenant   skipped"},
		"a limit without a key":         {"any-of.yaml", []string{"--request", "GET /"}, "all          counted   -       -      1"},
		"requests that share a counter": {"cost.yaml", []string{"--request", "GET /"}, "(missing)"},
		"a cost":                        {"cost.yaml", []string{"--request", "GET /", "-H", "x-team: a"}, "4000"},
	} {
		if out, _, err := offline(t, append(tc.args, "-f", samplePath(tc.sample))...); err != nil || !strings.Contains(out, tc.want) {
			t.Errorf("%s: printed\n%swant %q (%v)", name, out, tc.want, err)
		}
	}
}

func TestExpectations(t *testing.T) {
	const holds = "- {request: POST /v1/orders, headers: {x-tenant: a}, expect: {limits: [per-tenant]}}\n- {request: GET /, expect: {limits: []}}\n- {request: GET /}\n"
	if _, _, err := offline(t, "-f", samplePath("keyed.yaml"), "--requests", fileOf(t, holds)); err != nil {
		t.Error(err)
	}
	const fails = holds + "- {request: GET /, expect: {limits: [per-tenant]}}\n"
	_, _, err := offline(t, "-f", samplePath("keyed.yaml"), "--requests", fileOf(t, fails))
	if want := `request 4, "GET /": counted by the limits [], want ["per-tenant"]`; err == nil || err.Error() != want {
		t.Errorf("error %v, want %s", err, want)
	}
}

func TestTestNamesTheCure(t *testing.T) {
	keyed, err := os.ReadFile(samplePath("keyed.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	edited := func(from, to string) string { return fileOf(t, strings.Replace(string(keyed), from, to, 1)) }
	good := samplePath("keyed.yaml")
	for want, args := range map[string][]string{
		`unknown field "spec.limits[0].rates[0].windw"`: {"-f", edited("window: 1s", "windw: 1s")},
		"greater than or equal to 1":                    {"-f", edited("limit: 50", "limit: -5")},
		"set exactly one of window":                     {"-f", edited(", window: 1s", "")},
		"use RateLimitPolicy":                           {"-f", edited("kind: RateLimitPolicy", "kind: Policy")},
		"has no object of weir.dev":                     {"-f", fileOf(t, "apiVersion: v1\nkind: Secret\n")},
		"metadata.name is empty":                        {"-f", edited("name: keyed", "labels: {}")},
		"use 'METHOD TARGET'":                           {"-f", good, "--request", "GET"},
		"use 'NAME: VALUE'":                             {"-f", good, "--request", "GET /", "-H", "tenant"},
		"there is none: add one":                        {"-f", good, "-H", "x-tenant: a"},
		"has no requests: add one":                      {"-f", good, "--requests", fileOf(t, "[]")},
		"use an IP address":                             {"-f", good, "--client", "here"},
	} {
		if _, _, err := offline(t, args...); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v, want one with %q", err, want)
		}
	}
}
