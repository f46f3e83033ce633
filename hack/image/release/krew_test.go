package main

import (
	"crypto/sha256"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"
)

// TestKrewManifest: krew finds an archive for each platform, by its sum, and a program in it.
func TestKrewManifest(t *testing.T) {
	out := t.TempDir()
	archives := map[string]string{"linux/arm64": "kubectl-weir", "darwin/amd64": "kubectl-weir", "windows/amd64": "kubectl-weir.exe"}
	for platform := range archives {
		name := "kubectl-weir_" + strings.ReplaceAll(platform, "/", "_") + ".tar.gz"
		if err := os.WriteFile(filepath.Join(out, name), []byte(platform), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	r := &release{version: candidate, out: out}
	if err := r.krew(t.Context(), nil); err != nil {
		t.Fatal(err)
	}
	var m krewPlugin
	if err := yaml.UnmarshalStrict([]byte(text(t, filepath.Join(out, "weir.yaml"))), &m); err != nil {
		t.Fatal(err)
	}
	if m.APIVersion != "krew.googlecontainertools.github.com/v1alpha2" || m.Kind != "Plugin" || m.Metadata.Name != "weir" || m.Spec.Version != candidate {
		t.Errorf("the manifest is %+v", m)
	}
	// krew-index refuses longer ones, and those that begin as a sentence about the plugin does.
	if s := m.Spec.ShortDescription; len(s) == 0 || len(s) > 50 || strings.HasSuffix(s, ".") || m.Spec.Description == "" || m.Spec.Homepage == "" {
		t.Errorf("it is described as %q", s)
	}
	for _, p := range m.Spec.Platforms {
		platform := p.Selector.MatchLabels["os"] + "/" + p.Selector.MatchLabels["arch"]
		bin, ok := archives[platform]
		delete(archives, platform)
		sum := fmt.Sprintf("%x", sha256.Sum256([]byte(platform)))
		if !ok || p.Bin != bin || p.SHA256 != sum || !regexp.MustCompile(`^https://.*/`+candidate+`/kubectl-weir_[a-z]+_[a-z0-9]+\.tar\.gz$`).MatchString(p.URI) {
			t.Errorf("%s has %+v", platform, p)
		}
	}
	if len(archives) > 0 || len(m.Spec.Platforms) != 3 {
		t.Errorf("%v are missing", archives)
	}

	if err := os.WriteFile(filepath.Join(out, "kubectl-weir_linux.tar.gz"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := r.krew(t.Context(), nil); err == nil || !strings.Contains(err.Error(), "make plugins") {
		t.Errorf("error %v of an archive for no platform", err)
	}
}
