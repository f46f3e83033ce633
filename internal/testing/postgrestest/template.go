package postgrestest

import (
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
)

// places are where packages put the programs that are not in the PATH.
var places = []string{"/usr/lib/postgresql/*/bin", "/usr/pgsql-*/bin", "/opt/homebrew/opt/postgresql@*/bin"}

// program returns the path of one of Postgres's programs, of the newest release
// unless the PATH names one.
func program(t testing.TB, name string) string {
	t.Helper()
	path, err := exec.LookPath(name)
	if err == nil {
		return path
	}
	for _, place := range places {
		found, _ := filepath.Glob(filepath.Join(place, name)) // the pattern is well formed
		if len(found) > 0 {
			return slices.Max(found)
		}
	}
	t.Fatalf("%v; install it with: make deps", err)
	return ""
}

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
	version, err := exec.Command(program(t, "postgres"), "--version").Output()
	if err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(cache, "weir", strings.ReplaceAll(strings.TrimSpace(string(version)), " ", "-")+"-"+User)
	if _, err := os.Stat(dir); err == nil {
		return dir
	}
	fresh := newDir(t)
	run(t, program(t, "initdb"), "-D", fresh, "-U", User, "-A", "trust", "-E", "UTF8", "--locale=C", "--no-sync", "--wal-segsize=1")
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
	own(t, dir)
	return dir
}

// own makes a file the server's.
func own(t testing.TB, path string) {
	t.Helper()
	if attr := unprivileged(t); attr.Credential != nil {
		if err := os.Chown(path, int(attr.Credential.Uid), int(attr.Credential.Gid)); err != nil {
			t.Fatal(err)
		}
	}
}

// copyDir copies what is in a directory into another, which becomes the server's.
func copyDir(t testing.TB, from, to string) {
	t.Helper()
	if out, err := exec.Command("cp", "-a", from+"/.", to).CombinedOutput(); err != nil {
		t.Fatalf("copy %s to %s: %v: %s", from, to, err, out)
	}
}

// run runs one of Postgres's programs to its end.
func run(t testing.TB, path string, args ...string) {
	t.Helper()
	cmd := exec.Command(path, args...)
	cmd.Dir = os.TempDir()
	cmd.SysProcAttr = unprivileged(t)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%s: %v: %s", path, err, out)
	}
}

// unprivileged returns attributes of a process that Postgres consents to be: root
// becomes the user that its package made.
func unprivileged(t testing.TB) *syscall.SysProcAttr {
	t.Helper()
	attr := &syscall.SysProcAttr{}
	if os.Getuid() != 0 {
		return attr
	}
	u, err := user.Lookup("postgres")
	if err != nil {
		t.Fatalf("postgres does not run as root, and there is no user for it: %v; run the tests as another user, or install it with: make deps", err)
	}
	uid, err := strconv.ParseUint(u.Uid, 10, 32)
	if err != nil {
		t.Fatal(err)
	}
	gid, err := strconv.ParseUint(u.Gid, 10, 32)
	if err != nil {
		t.Fatal(err)
	}
	attr.Credential = &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}
	return attr
}
