package plugin

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// logPath is an access log in the combined format, with one line that is not a request.
var logPath = filepath.Join("testdata", "access.log")

// execute runs a command without a cluster.
func execute(t *testing.T, args ...string) (stdout, stderr string, err error) {
	t.Helper()
	var out, errs strings.Builder
	err = Execute(t.Context(), args, &out, &errs)
	return out.String(), errs.String(), err
}

// documented fails the test unless the page of the plugin has the output of a command, whose
// line ends with these words.
func documented(t *testing.T, command, output string) {
	t.Helper()
	page, err := os.ReadFile(filepath.Join("..", "..", "docs", "kubectl.md"))
	if err != nil {
		t.Fatal(err)
	}
	var trimmed strings.Builder
	for line := range strings.Lines(output) {
		trimmed.WriteString(strings.TrimRight(line, " \n") + "\n")
	}
	if want := command + "\n" + trimmed.String() + "```\n"; !strings.Contains(string(page), want) {
		t.Errorf("docs/kubectl.md lacks:\n%s", want)
	}
}

func TestSimulate(t *testing.T) {
	args := []string{"simulate", "-f", samplePath("cached-deny.yaml"), "--log", logPath}
	table, stderr, err := execute(t, args...)
	if err != nil {
		t.Fatal(err)
	}
	summary := stderr[strings.LastIndex(strings.TrimSpace(stderr), "\n")+1:]
	documented(t, "kubectl weir simulate -f config/samples/cached-deny.yaml --log access.log", table+summary)
	if want := "Warning: 1 lines are not requests in the format combined and are left out, the first because of line 42"; !strings.Contains(stderr, want) {
		t.Errorf("it warns\n%swant %q", stderr, want)
	}
	text, _, err := execute(t, append(args, "-o", "json")...)
	var found simulated
	if err != nil || json.Unmarshal([]byte(text), &found) != nil || len(found.Items) != 1 {
		t.Fatalf("JSON is %s (%v)", text, err)
	}
	if r := found.Items[0]; found.Log.Requests != 44 || r.Matched != 23 || r.Refused != 12 || r.Admitted != 11 || len(r.Top) != 2 || r.WorstMinute.Refused != 9 {
		t.Errorf("it is %+v", found)
	}
}

func TestSimulationWarns(t *testing.T) {
	_, stderr, err := execute(t, "simulate", "-f", samplePath("keyed.yaml"), "--log", logPath)
	if want := "limit keyed/per-tenant matches no request of the log"; err != nil || !strings.Contains(stderr, want) {
		t.Errorf("it warns %s (%v), want %q", stderr, err, want)
	}
	_, stderr, err = execute(t, "simulate", "-f", samplePath("overrides.yaml"), "--log", logPath)
	if want := "44 of 44 requests lack its key"; err != nil || !strings.Contains(stderr, want) {
		t.Errorf("it warns %s (%v), want %q", stderr, err, want)
	}
	late := fileOf(t, `192.0.2.1 - - [27/Nov/2026:09:00:02 +0000] "GET / HTTP/1.1" 200 1
192.0.2.1 - - [27/Nov/2026:09:00:01 +0000] "GET / HTTP/1.1" 200 1
`)
	_, stderr, err = execute(t, "simulate", "-f", samplePath("quickstart.yaml"), "--log", late, "--format", "common")
	if want := "1 requests are older"; err != nil || !strings.Contains(stderr, want) {
		t.Errorf("it warns %s (%v), want %q", stderr, err, want)
	}
}

// TestSamplesCanBeSimulated: every sample with a policy is replayed.
func TestSamplesCanBeSimulated(t *testing.T) {
	files, err := filepath.Glob(samplePath("*.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		name := filepath.Base(file)
		if strings.HasPrefix(name, "pool-") || strings.HasPrefix(name, "federated-") && name != "federated-policy.yaml" {
			continue
		}
		if _, _, err := execute(t, "simulate", "-f", file, "--log", logPath); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestSimulateNamesTheCure(t *testing.T) {
	good := samplePath("quickstart.yaml")
	for want, args := range map[string][]string{
		"use one of common, combined, envoy-json": {"-f", good, "--log", logPath, "--format", "w3c"},
		"choose another with --format":            {"-f", good, "--log", logPath, "--format", "envoy-json"},
		"--log: open":                             {"-f", good, "--log", "absent.log"},
		"the log is empty":                        {"-f", good, "--log", fileOf(t, "")},
		"has no RateLimitPolicy":                  {"-f", samplePath("pool-quickstart.yaml"), "--log", logPath},
		"use 0 or more":                           {"-f", good, "--log", logPath, "--top", "-1"},
		`"log" not set`:                           {"-f", good},
	} {
		if _, _, err := execute(t, append([]string{"simulate"}, args...)...); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v, want one with %q", err, want)
		}
	}
}
