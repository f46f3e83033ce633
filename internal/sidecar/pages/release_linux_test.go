package pages_test

import (
	"encoding/json"
	"os/exec"
	"path/filepath"
	"testing"
)

func TestAStaticProgramWorksOnWithoutItsPages(t *testing.T) {
	for _, tc := range []struct {
		name, cgo string
		released  bool
	}{
		{"static", "0", true},
		{"linked with C", "1", false},
	} {
		t.Run(tc.name, func(t *testing.T) {
			program := filepath.Join(t.TempDir(), "program")
			build := exec.CommandContext(t.Context(), "go", "build", "-o", program, "./testdata/program")
			build.Env = append(build.Environ(), "CGO_ENABLED="+tc.cgo)
			if out, err := build.CombinedOutput(); err != nil {
				t.Fatalf("%v\n%s", err, out)
			}
			out, err := exec.CommandContext(t.Context(), program).Output()
			if err != nil {
				t.Fatal(err)
			}
			var got struct {
				Released      bool
				Before, After uint64
			}
			if err := json.Unmarshal(out, &got); err != nil {
				t.Fatal(err)
			}
			if got.Released != tc.released {
				t.Errorf("released %v, want %v", got.Released, tc.released)
			}
			if tc.released && got.After >= got.Before {
				t.Errorf("%d bytes of the file are resident, %d were before", got.After, got.Before)
			}
		})
	}
}
