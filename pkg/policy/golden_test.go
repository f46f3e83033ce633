package policy_test

import (
	"bytes"
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/weir-dev/weir/pkg/policy"
)

var update = flag.Bool("update", false, "write the golden snapshots that are missing")

// goldens are the snapshots that testdata/snapshots holds as a version wrote them. Every
// later version reads them as the same, and writes the same for them: a sidecar that is
// two minor versions behind refuses each policy in which it finds anything else.
//
// A file is never changed or removed. For a new field write a new snapshot here, under
// the version that it comes with, and its file with
//
//	go test ./pkg/policy -run Golden -update
//
// A field that policies without it have to go without is omitempty or omitzero, and its
// zero value means what was meant before there was one.
var goldens = map[string]policy.Snapshot{
	"v0.1/least":           valid(),
	"v0.1/full":            full(),
	"v0.1/queued":          queued(),
	"v0.1/carried":         carried(),
	"v0.1/shared":          shared(),
	"v0.1/selective":       selective(),
	"v0.1/kept":            kept(),
	"v0.1/verified":        verified(),
	"v0.1/reset":           reset(),
	"v0.1/pending":         pending(),
	"v0.1/pooled":          pooled(),
	"v0.1/full-pool":       fullPool(),
	"v0.1/keyed-pool":      keyedPool(),
	"v0.1/key-queued-pool": keyQueuedPool(),
}

func TestGoldenSnapshotsStayAsTheyAre(t *testing.T) {
	for name, want := range goldens {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join("testdata", "snapshots", filepath.FromSlash(name)+".json")
			written, _, err := policy.Encode(want)
			if err != nil {
				t.Fatal(err)
			}
			data := golden(t, path, written)
			got, err := policy.Decode(data)
			if err != nil {
				t.Fatalf("%s is not understood any more: %v", path, err)
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("%s means something else (-then +now):\n%s", path, diff)
			}
			if diff := cmp.Diff(indented(t, data), indented(t, written)); diff != "" {
				t.Errorf("sidecars that wrote %s refuse what is written for it now (-then +now):\n%s", path, diff)
			}
		})
	}
}

func TestEveryGoldenSnapshotIsTested(t *testing.T) {
	files, err := filepath.Glob("testdata/snapshots/*/*.json")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		name := strings.TrimSuffix(strings.TrimPrefix(filepath.ToSlash(file), "testdata/snapshots/"), ".json")
		if _, tested := goldens[name]; !tested {
			t.Errorf("%s is not among the goldens: files are never renamed", file)
		}
	}
}

// golden returns the file. With -update it writes one that is missing.
func golden(t *testing.T, path string, written []byte) []byte {
	t.Helper()
	data, err := os.ReadFile(path)
	if os.IsNotExist(err) && *update {
		if err := os.MkdirAll(filepath.Dir(path), 0o750); err != nil {
			t.Fatal(err)
		}
		data, err = []byte(indented(t, written)), os.WriteFile(path, []byte(indented(t, written)), 0o600)
	}
	if err != nil {
		t.Fatalf("%v: write what is missing with -update", err)
	}
	return data
}

func indented(t *testing.T, data []byte) string {
	t.Helper()
	var out bytes.Buffer
	if err := json.Indent(&out, bytes.TrimSpace(data), "", "  "); err != nil {
		t.Fatal(err)
	}
	return out.String() + "\n"
}
