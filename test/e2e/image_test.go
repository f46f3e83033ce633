//go:build e2e

package e2e

import (
	"archive/tar"
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/weir-dev/weir/hack/kind/cluster"
)

// A pack is what an image consists of: files of this machine, by their names in the image.
type pack map[string]string

// program adds a file by a name, and the libraries that it is linked with.
func (p pack) program(ctx context.Context, name, file string) {
	GinkgoHelper()
	p[name] = file
	linked, err := exec.CommandContext(ctx, "ldd", file).Output()
	Expect(err).NotTo(HaveOccurred())
	for _, m := range regexp.MustCompile(`(/\S+) \(0x`).FindAllSubmatch(linked, -1) {
		p[string(m[1])] = string(m[1])
	}
}

// installed returns where this machine has a program.
func installed(program string) string {
	GinkgoHelper()
	file, err := exec.LookPath(program)
	Expect(err).NotTo(HaveOccurred(), "run the suite with make, which installs it")
	return file
}

// load brings the image onto the nodes, under a name.
func (p pack) load(ctx context.Context, name, entrypoint string) {
	GinkgoHelper()
	archive := filepath.Join(GinkgoT().TempDir(), "image.tar")
	Expect(os.WriteFile(archive, p.image(name, entrypoint), 0o644)).To(Succeed())
	Expect(cluster.Load(ctx, clusterName, GinkgoWriter, archive)).To(Succeed())
}

// image has the files in one layer, in the format of `docker save`.
func (p pack) image(name, entrypoint string) []byte {
	GinkgoHelper()
	var layer bytes.Buffer
	w := tar.NewWriter(&layer)
	for _, inside := range slices.Sorted(maps.Keys(p)) {
		data, err := os.ReadFile(p[inside])
		Expect(err).NotTo(HaveOccurred())
		add(w, inside[1:], 0o755, data)
	}
	Expect(w.Close()).To(Succeed())
	sum := sha256.Sum256(layer.Bytes())
	config := marshal(map[string]any{
		"architecture": runtime.GOARCH, "os": "linux",
		"config": map[string]any{"Entrypoint": []string{entrypoint}},
		"rootfs": map[string]any{"type": "layers", "diff_ids": []string{"sha256:" + hex.EncodeToString(sum[:])}},
	})
	var image bytes.Buffer
	w = tar.NewWriter(&image)
	add(w, "layer.tar", 0o644, layer.Bytes())
	add(w, "config.json", 0o644, config)
	add(w, "manifest.json", 0o644, marshal([]any{map[string]any{
		"Config": "config.json", "RepoTags": []string{name}, "Layers": []string{"layer.tar"},
	}}))
	Expect(w.Close()).To(Succeed())
	return image.Bytes()
}

func add(w *tar.Writer, name string, mode int64, data []byte) {
	GinkgoHelper()
	Expect(w.WriteHeader(&tar.Header{Name: name, Mode: mode, Size: int64(len(data))})).To(Succeed())
	_, err := w.Write(data)
	Expect(err).NotTo(HaveOccurred())
}

func marshal(v any) []byte {
	GinkgoHelper()
	data, err := json.Marshal(v)
	Expect(err).NotTo(HaveOccurred())
	return data
}
