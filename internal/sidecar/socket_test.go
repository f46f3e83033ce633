package sidecar

import (
	"context"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/weir-dev/weir/pkg/policy"
)

// TestTheSocketServesTheCheckAPI, to every user, and in the place of one that was left behind.
func TestTheSocketServesTheCheckAPI(t *testing.T) {
	s := newSandbox(t, http.HandlerFunc(hello))
	c := serveController(t, s)
	c.config.Snapshot, c.config.Version, _ = snapshotOf(t, policy.Store{Type: policy.ControllerStore}, 20)
	path := filepath.Join(s.env["WEIR_SANDBOX_DIR"], "check.sock")
	left, err := net.ListenUnix("unix", &net.UnixAddr{Name: path, Net: "unix"})
	if err != nil {
		t.Fatal(err)
	}
	left.SetUnlinkOnClose(false)
	_ = left.Close()
	s.args = append(s.args, "--check-socket=/check.sock")
	s.start(t)
	c.awaitAcknowledgement(t)
	if info, err := os.Stat(path); err != nil {
		t.Error(err)
	} else if info.Mode() != os.ModeSocket|0o666 {
		t.Errorf("the socket is %v", info.Mode())
	}
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true, DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "unix", path)
	}}}
	const question = `{"policy": "checkout", "limit": "per-tenant", "key": "ann", "cost": 15}`
	for _, want := range []int{http.StatusOK, http.StatusTooManyRequests} {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://localhost/v1/check", strings.NewReader(question))
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Content-Type", "application/json")
		w, err := client.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		_ = w.Body.Close()
		if w.StatusCode != want {
			t.Errorf("status %d, want %d", w.StatusCode, want)
		}
	}
	s.stop()
	s.wait(t)
	if _, err := os.Lstat(path); !os.IsNotExist(err) {
		t.Errorf("the socket is left behind: %v", err)
	}
}

// TestNoFileGivesWayToTheSocket but another socket.
func TestNoFileGivesWayToTheSocket(t *testing.T) {
	path := filepath.Join(t.TempDir(), "check.sock")
	if err := os.WriteFile(path, []byte("mine"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, at := range []string{path, filepath.Join(path, "check.sock")} {
		l, err := openSocket(t.Context(), at)
		if err == nil {
			_ = l.Close()
			t.Fatal("it listens")
		}
		if text := err.Error(); !strings.Contains(text, at) || !strings.Contains(text, "mount a directory") {
			t.Errorf("%q does not name the path and the cure", text)
		}
	}
	if text, err := os.ReadFile(path); err != nil || string(text) != "mine" {
		t.Errorf("the file has %q, %v", text, err)
	}
}
