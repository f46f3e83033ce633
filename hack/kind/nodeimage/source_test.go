package nodeimage

import (
	"testing"
	"testing/fstest"
)

func TestFingerprint(t *testing.T) {
	base := func() fstest.MapFS {
		return fstest.MapFS{
			"node/go.mod":     {Data: []byte("module node")},
			"node/doc.go":     {Data: []byte("package node")},
			"node/x_test.go":  {Data: []byte("package node")},
			"elsewhere/other": {Data: []byte("x")},
		}
	}
	key := func(tree fstest.MapFS, words ...string) string {
		t.Helper()
		key, err := fingerprint(tree, []string{"node"}, words...)
		if err != nil {
			t.Fatal(err)
		}
		return key
	}
	reference := key(base(), "amd64")
	for name, test := range map[string]struct {
		change func(fstest.MapFS)
		word   string
		same   bool
	}{
		"nothing":          {func(fstest.MapFS) {}, "amd64", true},
		"a test":           {func(f fstest.MapFS) { f["node/x_test.go"].Data = nil }, "amd64", true},
		"documentation":    {func(f fstest.MapFS) { f["node/doc.go"].Data = nil }, "amd64", true},
		"a file elsewhere": {func(f fstest.MapFS) { f["elsewhere/other"].Data = nil }, "amd64", true},
		"a version":        {func(f fstest.MapFS) { f["node/go.mod"].Data = []byte("module edon") }, "amd64", false},
		"a new file":       {func(f fstest.MapFS) { f["node/setup.sh"] = &fstest.MapFile{} }, "amd64", false},
		"a file's name":    {func(f fstest.MapFS) { f["node/go.sum"] = f["node/go.mod"]; delete(f, "node/go.mod") }, "amd64", false},
		"the architecture": {func(fstest.MapFS) {}, "arm64", false},
	} {
		t.Run(name, func(t *testing.T) {
			tree := base()
			test.change(tree)
			if got := key(tree, test.word); (got == reference) != test.same {
				t.Errorf("key %s after %s, same wanted: %t", got, reference, test.same)
			}
		})
	}
}

func TestFingerprintOfAMissingFile(t *testing.T) {
	if key, err := fingerprint(fstest.MapFS{}, []string{"node"}); err == nil {
		t.Errorf("got %s for nothing", key)
	}
}
