package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestAReleaseIsOfItsTag plays hack/tagged.sh in clones.
func TestAReleaseIsOfItsTag(t *testing.T) {
	script, err := filepath.Abs("../../tagged.sh")
	if err != nil {
		t.Fatal(err)
	}
	t.Setenv("GIT_CONFIG_GLOBAL", os.DevNull)
	for _, who := range []string{"AUTHOR", "COMMITTER"} {
		t.Setenv("GIT_"+who+"_NAME", "Eve")
		t.Setenv("GIT_"+who+"_EMAIL", "eve@example.com")
	}
	origin := t.TempDir()
	call := func(directory, line string) (string, error) {
		command := exec.CommandContext(t.Context(), "bash", "-c", line)
		command.Dir = directory
		out, err := command.CombinedOutput()
		return string(out), err
	}
	const history = `git init -q && echo 1 >file && git add file && git commit -qm one &&
		git tag -a v0.1.0-rc.1 -m v0.1.0-rc.1 && git tag v0.1.0 && echo 2 >file && git commit -qam two`
	if out, err := call(origin, history); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	for name, tt := range map[string]struct {
		clone, version string
		changed        bool
		wrong          string
	}{
		"the tag, beside one of a candidate": {clone: "--branch v0.1.0", version: "v0.1.0"},
		"a shallow clone of the tag":         {clone: "--branch v0.1.0 --depth 1", version: "v0.1.0"},
		"a commit behind the tag":            {version: "v0.1.0", wrong: "-1-g"},
		"a shallow clone without the tag":    {clone: "--depth 1", version: "v0.1.0", wrong: "not v0.1.0: check out that tag"},
		"a candidate of any commit":          {clone: "--depth 1", version: "v0.2.0-rc.1"},
		"the tag with changes":               {clone: "--branch v0.1.0", version: "v0.1.0", changed: true, wrong: "-dirty, not v0.1.0"},
		"a commit instead of a version":      {version: "abc1234-dirty", wrong: "VERSION is abc1234-dirty: set it to one like"},
		"nothing":                            {version: "", wrong: "VERSION is empty: set it to one like"},
	} {
		t.Run(name, func(t *testing.T) {
			clone := filepath.Join(t.TempDir(), "clone")
			if out, err := call(origin, "git clone -q "+tt.clone+" file://"+origin+" "+clone); err != nil {
				t.Fatalf("%v: %s", err, out)
			}
			if tt.changed {
				if err := os.WriteFile(filepath.Join(clone, "file"), []byte("3\n"), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			out, err := call(clone, script+" "+tt.version)
			if (err == nil) != (tt.wrong == "") || !strings.Contains(out, tt.wrong) {
				t.Errorf("%v: %q, want %q", err, out, tt.wrong)
			}
		})
	}
}
