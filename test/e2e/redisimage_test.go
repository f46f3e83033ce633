//go:build e2e

package e2e

import (
	"archive/tar"
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/weir-dev/weir/hack/kind/cluster"
)

const redisImage = "weir-test-redis:local"

// loadRedis brings this machine's redis-server, with the libraries it needs, onto the
// nodes as an image.
func loadRedis(ctx context.Context) {
	GinkgoHelper()
	server, err := exec.LookPath("redis-server")
	Expect(err).NotTo(HaveOccurred(), "run the suite with `make e2e`, which installs it")
	files := []string{server}
	linked, err := exec.CommandContext(ctx, "ldd", server).Output()
	Expect(err).NotTo(HaveOccurred())
	for _, m := range regexp.MustCompile(`(/\S+) \(0x`).FindAllSubmatch(linked, -1) {
		files = append(files, string(m[1]))
	}
	archive := filepath.Join(GinkgoT().TempDir(), "redis.tar")
	Expect(os.WriteFile(archive, imageOf(files, server), 0o644)).To(Succeed())
	Expect(cluster.Load(ctx, clusterName, GinkgoWriter, archive)).To(Succeed())
}

// imageOf packs files into an image of one layer, in the format of `docker save`.
func imageOf(files []string, entrypoint string) []byte {
	GinkgoHelper()
	var layer bytes.Buffer
	w := tar.NewWriter(&layer)
	for _, f := range files {
		data, err := os.ReadFile(f)
		Expect(err).NotTo(HaveOccurred())
		add(w, f[1:], 0o755, data)
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
		"Config": "config.json", "RepoTags": []string{redisImage}, "Layers": []string{"layer.tar"},
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
