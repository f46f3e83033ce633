//go:build browser

package dashboard

import (
	"context"
	"math"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"sigs.k8s.io/yaml"
)

// shop reads objects as a cluster under load has them: figures move from one time to the next. more is
// added to a message, and failed is what could not be read.
func shop(t *testing.T, more string, failed ...string) Source {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("testdata", "shop.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	begin, reads := time.Date(2026, 11, 1, 12, 0, 0, 0, time.UTC), int64(0)
	return func(context.Context) (*Objects, error) {
		all := &Objects{}
		if err := yaml.UnmarshalStrict(text, all); err != nil {
			return nil, err
		}
		reads++
		all.Errors = failed
		all.Policies[1].Status.Conditions[0].Message += more
		all.ReadAt = begin.Add(time.Duration(reads) * 2 * time.Second)
		move := func(n *int64) { *n += int64(float64(*n) / 6 * math.Sin(float64(reads)/3)) }
		for i := range all.Policies {
			for j := range all.Policies[i].Status.Limits {
				l := &all.Policies[i].Status.Limits[j]
				move(l.AdmittedPerSecond)
			}
		}
		for i := range all.Pools {
			s := &all.Pools[i].Status
			move(&s.Limit.Current)
			*s.Latency.CurrentMicroseconds += 120 * s.Limit.Current
			move(s.InFlight)
		}
		return all, nil
	}
}

// chromium runs a page for 40 seconds of its own clock, which pass at once.
func chromium(t *testing.T, url string, args ...string) string {
	t.Helper()
	args = append([]string{
		"--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--hide-scrollbars", "--user-data-dir=" + t.TempDir(),
		"--virtual-time-budget=40000", "--window-size=1320,1000", "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1",
	}, args...)
	out, err := exec.CommandContext(t.Context(), "chromium", append(args, url)...).Output()
	if err != nil {
		t.Fatalf("chromium: %v (`hack/deps.sh chromium` installs it)", err)
	}
	return string(out)
}

var markup = regexp.MustCompile(`<[^>]*>`)

// browse opens the page of what source reads.
func browse(t *testing.T, source Source, args ...string) string {
	t.Helper()
	h, now := New("s", source), time.Now()
	h.now = func() time.Time { // the browser's clock runs ahead
		now = now.Add(freshFor)
		return now
	}
	server := httptest.NewServer(h)
	defer server.Close()
	return chromium(t, server.URL+"/s/", args...)
}

// TestInABrowser: the page shows what the objects have. DASHBOARD_PICTURE names a file for a picture of it.
func TestInABrowser(t *testing.T) {
	dom := browse(t, shop(t, "<script>alert(1)</script>", "listing nothing: forbidden"), "--dump-dom")
	text := markup.ReplaceAllString(dom, "\n")
	for _, want := range []string{
		"kind-shop", "read at", "checkout", "Hard", "3 of 3 pods", "640 of 1,000 used", "0 ≤ 0", "2.4 %", "49915e0d7d4b402e3017d010bc1c0e83",
		"search", "Shadow", "2 of 3 pods", "pod search-2 runs", "3 ≤ unbounded, AtLeast",
		"payments", "Saturated", "Algorithm", "ledger", "eu", "Connected", "root eu", "listing nothing: forbidden", "<script>alert(1)</script>",
	} {
		if !strings.Contains(text, strings.NewReplacer("<", "&lt;", ">", "&gt;").Replace(want)) {
			t.Errorf("the page lacks %q", want)
		}
	}
	if strings.Contains(dom, "[object ") || strings.Contains(text, "undefined") || strings.Contains(text, "NaN") {
		t.Errorf("the page shows what is not for readers:\n%s", text)
	}
	if strings.Contains(dom, "<script>alert") {
		t.Error("the text of an object became markup")
	}
	for class, least := range map[string]int{`class="chart"`: 8, `class="dot"`: 10, `class="dot over"`: 1, `class="bar"`: 3, `class="bar full"`: 1} {
		if n := strings.Count(dom, class); n < least {
			t.Errorf("the page has %d of %s, want %d or more", n, class, least)
		}
	}
	longest := 0 // line of a chart, in points
	for _, line := range regexp.MustCompile(`points="([^"]*)"`).FindAllStringSubmatch(dom, -1) {
		longest = max(longest, len(strings.Fields(line[1])))
	}
	if longest < 10 {
		t.Errorf("the longest line of a chart has %d points after 40 s", longest)
	}
	if file := os.Getenv("DASHBOARD_PICTURE"); file != "" {
		browse(t, shop(t, ""), "--screenshot="+file)
	}
}

// TestABrowserShowsThatNothingIsRead: the page says so, and why.
func TestABrowserShowsThatNothingIsRead(t *testing.T) {
	dom := browse(t, func(context.Context) (*Objects, error) { return nil, os.ErrDeadlineExceeded }, "--dump-dom")
	for _, want := range []string{"not current", os.ErrDeadlineExceeded.Error()} {
		if !strings.Contains(dom, want) {
			t.Errorf("the page lacks %q", want)
		}
	}
}
