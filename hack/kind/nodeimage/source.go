package nodeimage

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"

	"github.com/weir-dev/weir/hack/kind/machine"
)

// source is what an image is built from.
type source struct {
	checkout string // Weir's source tree
	kind     string // the source of sigs.k8s.io/kind
	key      string // of everything the image depends on
}

// inputs are the files of the checkout that decide what the image holds.
var inputs = []string{"hack/kind/node", "hack/kind/nodeimage", "hack/kube"}

func newSource(ctx context.Context) (source, error) {
	checkout, err := machine.Checkout(ctx)
	if err != nil {
		return source{}, err
	}
	kind, err := machine.ModuleDir(ctx, "sigs.k8s.io/kind")
	if err != nil {
		return source{}, err
	}
	key, err := fingerprint(os.DirFS(checkout), inputs, filepath.Base(kind), runtime.GOARCH)
	if err != nil {
		return source{}, err
	}
	return source{checkout: checkout, kind: kind, key: key}, nil
}

// fingerprint hashes files below the roots, and further words. Tests and
// documentation decide nothing.
func fingerprint(tree fs.FS, roots []string, words ...string) (string, error) {
	sum := sha256.New()
	for _, word := range words {
		fmt.Fprintf(sum, "%q\n", word)
	}
	for _, root := range roots {
		err := fs.WalkDir(tree, root, func(path string, entry fs.DirEntry, err error) error {
			if err != nil || entry.IsDir() || strings.HasSuffix(path, "_test.go") || strings.HasSuffix(path, "doc.go") {
				return err
			}
			content, err := fs.ReadFile(tree, path)
			fmt.Fprintf(sum, "%q %d\n%s", path, len(content), content)
			return err
		})
		if err != nil {
			return "", fmt.Errorf("read what the node image is built from: %w", err)
		}
	}
	return hex.EncodeToString(sum.Sum(nil))[:12], nil
}

func (s source) image() string { return "weir-node:" + s.key }

// archive is the file that keeps the image from one engine to the next.
func (s source) archive() (string, error) {
	dir, err := machine.Cache("node")
	return filepath.Join(dir, s.key+".tar"), err
}
