package disk_test

import (
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/weir-dev/weir/internal/testing/devcluster/disk"
)

func TestAFullDiskTakesNoFile(t *testing.T) {
	dir := t.TempDir()
	library, err := disk.Library(t.Context(), dir)
	if err != nil {
		t.Fatal(err)
	}
	d, err := disk.New(filepath.Join(dir, "disk"))
	if err != nil {
		t.Fatal(err)
	}
	for _, full := range []bool{false, true, false} {
		if err := d.SetFull(full); err != nil {
			t.Fatal(err)
		}
		c := exec.CommandContext(t.Context(), "sh", "-c", "echo to a pipe; dd if=/dev/zero of="+filepath.Join(dir, "written")+" count=1 2>&1")
		c.Env = append(d.Environment(), "LD_PRELOAD="+library)
		out, err := c.CombinedOutput()
		if !strings.Contains(string(out), "to a pipe") || (err != nil) != full || strings.Contains(string(out), "No space left") != full {
			t.Errorf("full %v: %v: %s", full, err, out)
		}
	}
}
