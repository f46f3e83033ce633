package plugin

import (
	"strings"
	"testing"
	"time"
)

// TestSuggest compares the output with the page that documents it. Validated as a file, it is a
// policy that counts.
func TestSuggest(t *testing.T) {
	text, _, err := execute(t, "suggest", "--log", logPath, "--selector", "app=checkout", "--by", "client")
	if err != nil {
		t.Fatal(err)
	}
	documented(t, "kubectl weir suggest --log access.log --selector app=checkout --by client", text)
	table, stderr, err := offline(t, "-f", fileOf(t, text), "--request", "GET /", "--client", "198.51.100.20")
	if err != nil || !strings.Contains(table, "counted") || !strings.Contains(table, "198.51.100.20") {
		t.Errorf("test prints\n%s%s(%v)", table, stderr, err)
	}
}

func TestSuggestions(t *testing.T) {
	for name, tc := range map[string]struct {
		args []string
		want []string // in the output
	}{
		"overall":         {[]string{"--by", "overall"}, []string{"limit: 33\n", "name: overall\n", "most 22, in 3 windows"}},
		"without head":    {[]string{"--headroom", "0"}, []string{"limit: 22\n", "refused about 0 requests"}},
		"the median":      {[]string{"--percentile", "50", "--headroom", "0"}, []string{"limit: 13\n", "refused about 9 requests"}},
		"other windows":   {[]string{"--window", "1h"}, []string{"window: 1h\n", "limit: 66\n"}},
		"by path":         {[]string{"--by", "path"}, []string{"type: Path\n", "name: per-path\n"}},
		"by method":       {[]string{"--by", "method"}, []string{"type: Method\n"}},
		"by header":       {[]string{"--by", "header:User-Agent"}, []string{"name: user-agent\n", "name: per-header-user-agent\n"}},
		"a name of yours": {[]string{"--name", "edge"}, []string{"metadata:\n  name: edge\n"}},
	} {
		t.Run(name, func(t *testing.T) {
			text, _, err := execute(t, append([]string{"suggest", "--log", logPath, "--selector", "app=checkout,tier=web"}, tc.args...)...)
			if err != nil {
				t.Fatal(err)
			}
			for _, want := range append(tc.want, "app: checkout\n", "tier: web\n", "mode: Shadow\n") {
				if !strings.Contains(text, want) {
					t.Errorf("it prints\n%swant %q", text, want)
				}
			}
			if _, _, err := offline(t, "-f", fileOf(t, text)); err != nil {
				t.Errorf("the policy is not valid: %v\n%s", err, text)
			}
		})
	}
}

func TestSuggestNamesTheCure(t *testing.T) {
	for want, args := range map[string][]string{
		"use LABEL=VALUE":                 {"--selector", "app in (a)"},
		"use overall, client":             {"--selector", "app=a", "--by", "user"},
		"use whole milliseconds":          {"--selector", "app=a", "--window", "10ms"},
		"--percentile is 0: use":          {"--selector", "app=a", "--percentile", "0"},
		"--headroom is -1: use":           {"--selector", "app=a", "--headroom", "-1"},
		"no request of the log has":       {"--selector", "app=a", "--by", "header:x-tenant"},
		`--name is "A b": use lower-case`: {"--selector", "app=a", "--name", "A b"},
		`required flag(s) "selector" n`:   {},
	} {
		if _, _, err := execute(t, append([]string{"suggest", "--log", logPath}, args...)...); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v, want one with %q", err, want)
		}
	}
}

func TestDurations(t *testing.T) {
	for want, d := range map[string]time.Duration{
		"100ms": 100 * time.Millisecond, "1500ms": 1500 * time.Millisecond, "1s": time.Second, "10s": 10 * time.Second, "1m": time.Minute,
		"1m30s": 90 * time.Second, "1h": time.Hour, "1h30m": 90 * time.Minute, "744h": 744 * time.Hour,
	} {
		if got := duration(d); got != want {
			t.Errorf("%v is %s, want %s", d, got, want)
		}
	}
}
