package conformance

import (
	"context"
	"encoding/xml"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"
)

// failsOverHTTP2 are the cases of h2spec that sidecars fail: without the preface a connection is one
// of HTTP/1.1, and answered in that.
var failsOverHTTP2 = []string{"3.5/2: Sends invalid connection preface"}

// TestHTTP2 runs h2spec, which holds a server to RFC 9113 and RFC 7541.
func TestHTTP2(t *testing.T) {
	app := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = w.Write([]byte("an answer"))
	}))
	app.Config.Protocols = new(http.Protocols)
	app.Config.Protocols.SetHTTP1(true)
	app.Config.Protocols.SetUnencryptedHTTP2(true)
	app.Config.HTTP2 = &http.HTTP2Config{MaxReadFrameSize: 16 << 10} // h2spec takes a larger frame for too large
	app.Config.ErrorLog = slog.NewLogLogger(slog.DiscardHandler, slog.LevelError)
	app.Start()
	t.Cleanup(app.Close)
	for _, at := range targets(t, app.Listener.Addr().String(), func(address string) error { return answers(t.Context(), address) }) {
		t.Run(at.name, func(t *testing.T) {
			t.Parallel() // it waits more than it works
			failed, all := map[string]bool{}, 0
			for try := range tries {
				now := h2spec(t, at.address)
				all = len(now)
				for name, ok := range now {
					failed[name] = !ok && (try == 0 || failed[name])
				}
				maps.DeleteFunc(failed, func(_ string, fails bool) bool { return !fails })
				if len(failed) <= len(failsOverHTTP2) {
					break
				}
			}
			names := slices.Sorted(maps.Keys(failed))
			note("h2spec: HTTP/2 and HPACK", at.name, all-len(names), all)
			t.Logf("%d of %d cases fail: %q", len(names), all, names)
			if at.isOurs() && !slices.Equal(names, failsOverHTTP2) {
				t.Errorf("%q fail, and %q are known to", names, failsOverHTTP2)
			}
		})
	}
}

// tries is how often a case may be tried: h2spec waits 2 s for what it expects, and a race
// in net/http decides how one case ends.
const tries = 3

// h2spec returns which of its cases something passes.
func h2spec(t *testing.T, address string) map[string]bool {
	t.Helper()
	file := filepath.Join(t.TempDir(), "report.xml")
	suite := exec.CommandContext(t.Context(), program(t, "h2spec"), "-h", "127.0.0.1", "-p", portOf(address), "-j", file)
	out, err := suite.CombinedOutput()
	if exit := new(exec.ExitError); err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatalf("h2spec reports nothing: %v\n%s", err, out)
	}
	var report struct {
		Suites []struct {
			ID    string `xml:"id,attr"`
			Cases []struct {
				Name    string    `xml:"classname,attr"`
				Failure *struct{} `xml:"failure"`
				Error   *struct{} `xml:"error"`
				Skipped *struct{} `xml:"skipped"`
			} `xml:"testcase"`
		} `xml:"testsuite"`
	}
	if err := xml.Unmarshal(data, &report); err != nil {
		t.Fatal(err)
	}
	cases := map[string]bool{}
	for _, s := range report.Suites {
		for i, c := range s.Cases {
			if c.Skipped == nil {
				cases[fmt.Sprintf("%s/%d: %s", s.ID, i+1, c.Name)] = c.Failure == nil && c.Error == nil
			}
		}
	}
	if len(cases) < 100 {
		t.Fatalf("h2spec ran %d cases\n%s", len(cases), out)
	}
	return cases
}

// answers returns an error unless the answer to a request over HTTP/2 is a success.
func answers(ctx context.Context, address string) error {
	protocols := new(http.Protocols)
	protocols.SetUnencryptedHTTP2(true)
	transport := &http.Transport{Protocols: protocols}
	defer transport.CloseIdleConnections()
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+address, http.NoBody)
	if err != nil {
		return err
	}
	res, err := transport.RoundTrip(r)
	if err != nil {
		return err
	}
	_ = res.Body.Close()
	if res.StatusCode != http.StatusOK {
		return errors.New(res.Status)
	}
	return nil
}
