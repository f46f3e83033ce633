package postgrestest

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/weir-dev/weir/internal/testing/devcluster/servers"
)

var made sync.Mutex

// template returns the data of a fresh server. It is made once for each version and
// kept in the user's cache, since making it takes longer than most tests.
func template(t testing.TB) string {
	t.Helper()
	made.Lock()
	defer made.Unlock()
	cache, err := os.UserCacheDir()
	if err != nil {
		cache = os.TempDir()
	}
	version, err := servers.PostgresVersion()
	if err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(cache, "weir", strings.ReplaceAll(strings.TrimSpace(string(version)), " ", "-")+"-"+User)
	if _, err := os.Stat(dir); err == nil {
		return dir
	}
	fresh := newDir(t)
	if err := servers.InitDB(context.Background(), fresh, "--wal-segsize=1"); err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(filepath.Dir(dir), 0o755); err != nil {
		t.Fatal(err)
	}
	part, err := os.MkdirTemp(filepath.Dir(dir), "part-") //nolint:usetesting // it becomes the template
	if err != nil {
		t.Fatal(err)
	}
	copyDir(t, fresh, part)
	if err := os.Rename(part, dir); err != nil {
		_ = os.RemoveAll(part) // another test binary was faster
	}
	return dir
}

// newDir returns an empty directory that the server owns, removed when the test ends.
func newDir(t testing.TB) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "weir-postgres-") //nolint:usetesting // the server may not look into t.TempDir
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	if err := servers.Own(dir); err != nil {
		t.Fatal(err)
	}
	return dir
}

// copyDir copies what is in a directory into another, which becomes the server's.
func copyDir(t testing.TB, from, to string) {
	t.Helper()
	if out, err := exec.Command("cp", "-a", from+"/.", to).CombinedOutput(); err != nil {
		t.Fatalf("copy %s to %s: %v: %s", from, to, err, out)
	}
}
