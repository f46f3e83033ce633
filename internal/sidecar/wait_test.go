package sidecar

import (
	"bytes"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
)

// TestWait: it ends when the sidecar is ready and not before.
func TestWait(t *testing.T) {
	var asked atomic.Int64
	admin := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if asked.Add(1) < 3 || r.URL.Path != "/readyz" {
			w.WriteHeader(http.StatusServiceUnavailable)
		}
	}))
	t.Cleanup(admin.Close)
	args := []string{"wait", "--admin-address=" + admin.Listener.Addr().String()}
	if err := Execute(t.Context(), args, environment(nil), io.Discard, io.Discard); err != nil {
		t.Fatal(err)
	}
	if n := asked.Load(); n != 3 {
		t.Errorf("it ended at answer %d, want the third, the first that says ready", n)
	}
}

func TestWaitNamesWhatIsInTheWay(t *testing.T) {
	busy := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusServiceUnavailable) }))
	t.Cleanup(busy.Close)
	for name, tc := range map[string]struct {
		args []string
		want []string
	}{
		"a sidecar that never is ready": {[]string{"--timeout=1s", "--admin-address=" + busy.Listener.Addr().String()}, []string{"not ready after 1s", "503", "log"}},
		"an unknown flag":               {[]string{"--port=1"}, []string{"port", "--help"}},
		"an argument":                   {[]string{"now"}, []string{`"now"`, "--help"}},
	} {
		t.Run(name, func(t *testing.T) {
			err := Execute(t.Context(), append([]string{"wait"}, tc.args...), environment(nil), io.Discard, io.Discard)
			if err == nil {
				t.Fatal("it ended well")
			}
			for _, want := range tc.want {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("%q does not say %q", err, want)
				}
			}
		})
	}
}

// TestExecute: each command is found by its name.
func TestExecute(t *testing.T) {
	for command, want := range map[string]string{"capture": "sidecar capture --redirect", "wait": "sidecar wait [", "--help": "sidecar [flags]"} {
		var out bytes.Buffer
		args := []string{command}
		if command != "--help" {
			args = append(args, "--help")
		}
		if err := Execute(t.Context(), args, environment(nil), &out, io.Discard); err != nil || !strings.Contains(out.String(), want) {
			t.Errorf("%s: error %v, help %q", command, err, &out)
		}
	}
}
