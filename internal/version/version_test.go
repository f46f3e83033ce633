package version_test

import (
	"fmt"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus/testutil"

	"github.com/weir-dev/weir/internal/version"
)

func TestAProgramAlwaysHasAVersion(t *testing.T) {
	if version.String() == "" {
		t.Error("this test's program has no version")
	}
}

func TestTheMetricShowsIt(t *testing.T) {
	want := fmt.Sprintf(`# HELP weir_build_info 1, with the version of the program and of Go that it was built with.
# TYPE weir_build_info gauge
weir_build_info{goversion=%q,version=%q} 1
`, runtime.Version(), version.String())
	if err := testutil.CollectAndCompare(version.Metric(), strings.NewReader(want)); err != nil {
		t.Error(err)
	}
}

// TestTheLinkerSetsIt keeps the name of the variable what hack/image writes to: the
// linker says nothing about one that does not exist.
func TestTheLinkerSetsIt(t *testing.T) {
	program := filepath.Join(t.TempDir(), "print")
	build := exec.CommandContext(t.Context(), "go", "build", "-o", program,
		"-ldflags", "-X github.com/weir-dev/weir/internal/version.built=v1.2.3", "./testdata/print")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	out, err := exec.CommandContext(t.Context(), program).Output()
	if got := strings.TrimSpace(string(out)); err != nil || got != "v1.2.3" {
		t.Errorf("it says %q (%v), want v1.2.3", got, err)
	}
}
