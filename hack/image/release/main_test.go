package main

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"io"
	"log"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/registry"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/random"
	"github.com/google/go-containerregistry/pkg/v1/remote"
)

const candidate = "v0.9.0-rc.1"

// built writes images of a version, as hack/image does, and returns their digests.
func built(t *testing.T, directory, version string) map[string]string {
	t.Helper()
	digests := map[string]string{}
	for _, program := range programs {
		index, err := random.Index(100, 1, 2)
		if err != nil {
			t.Fatal(err)
		}
		written, err := layout.Write(filepath.Join(directory, program), empty.Index)
		if err != nil {
			t.Fatal(err)
		}
		if err := written.AppendIndex(index, layout.WithAnnotations(map[string]string{"org.opencontainers.image.ref.name": version})); err != nil {
			t.Fatal(err)
		}
		digest, err := index.Digest()
		if err != nil {
			t.Fatal(err)
		}
		digests[program] = digest.String()
		contents, err := index.IndexManifest()
		if err != nil {
			t.Fatal(err)
		}
		if len(contents.Manifests) != 2 {
			t.Fatalf("%d images", len(contents.Manifests))
		}
		for i, architecture := range []string{"amd64", "arm64"} {
			bill := filepath.Join(directory, program+"-linux-"+architecture+".spdx.json")
			if err := os.WriteFile(bill, []byte(contents.Manifests[i].Digest.Hex), 0o600); err != nil {
				t.Fatal(err)
			}
		}
	}
	// Files that other builds left.
	for _, stale := range []string{"weir-test-app-linux-amd64", "weir-sidecar-linux-riscv64"} {
		if err := os.WriteFile(filepath.Join(directory, stale+".spdx.json"), []byte("another"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for file, content := range map[string]string{
		"windows_amd64.exe": "program", "windows_amd64.licences": "all", "linux_arm64": "a program", "linux_arm64.licences": "more",
	} {
		if err := os.WriteFile(filepath.Join(directory, "kubectl-weir_"+file), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return digests
}

// TestAReleaseIsInstallableFromItsRegistry: a release candidate is pushed to a registry of this
// machine, and its files name the images that are there.
func TestAReleaseIsInstallableFromItsRegistry(t *testing.T) {
	server := httptest.NewServer(registry.New(registry.Logger(log.New(io.Discard, "", 0))))
	defer server.Close()
	t.Setenv("HELM_CACHE_HOME", t.TempDir()) // nor the credentials of somebody
	t.Setenv("HELM_CONFIG_HOME", t.TempDir())
	at := strings.TrimPrefix(server.URL, "http://") + "/weir"
	images, out := t.TempDir(), filepath.Join(t.TempDir(), "release")
	digests := built(t, images, candidate)
	args := []string{"-version", candidate, "-registry", at, "-source", "../../..", "-images", images, "-plugins", images, "-out", out, "-push"}
	var said bytes.Buffer
	if err := run(t.Context(), args, &said, &said); err != nil {
		t.Fatalf("%v\n%s\n(make test-install provides kubectl and helm)", err, said.String())
	}

	var names []string
	files, err := os.ReadDir(out)
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		names = append(names, f.Name())
	}
	want := []string{
		"checksums.txt", "install.yaml", "kubectl-weir_linux_arm64.tar.gz", "kubectl-weir_windows_amd64.tar.gz", "notes.md", "weir-0.9.0-rc.1.tgz",
		"weir-controller-linux-amd64.spdx.json", "weir-controller-linux-arm64.spdx.json", "weir-sidecar-linux-amd64.spdx.json", "weir-sidecar-linux-arm64.spdx.json", "weir.yaml",
	}
	if !slices.Equal(names, want) {
		t.Errorf("the release has the files %q, want %q", names, want)
	}
	manifest, sums := text(t, filepath.Join(out, "install.yaml")), text(t, filepath.Join(out, "checksums.txt"))
	if sum := fmt.Sprintf("%x  install.yaml\n", sha256.Sum256([]byte(manifest))); !strings.Contains(sums, sum) {
		t.Errorf("checksums.txt lacks %q:\n%s", sum, sums)
	}
	for program, digest := range digests {
		if reference := at + "/" + program + "@" + digest; !strings.Contains(manifest, reference) {
			t.Errorf("install.yaml does not name %s", reference)
		}
		tag, err := name.NewTag(at + "/" + program + ":" + candidate)
		if err != nil {
			t.Fatal(err)
		}
		if pushed, err := remote.Get(tag); err != nil || pushed.Digest.String() != digest {
			t.Errorf("%s is %v, %v; want %s", tag, pushed, err, digest)
		}
	}

	for platform, want := range map[string]*regexp.Regexp{
		"windows_amd64": regexp.MustCompile(`^\S+ .* LICENSE\n-rw-r--r-- .* 3 .* THIRD-PARTY-LICENSES\n-rwxr-xr-x .* 7 .* kubectl-weir\.exe\n$`),
		"linux_arm64":   regexp.MustCompile(`^\S+ .* LICENSE\n-rw-r--r-- .* 4 .* THIRD-PARTY-LICENSES\n-rwxr-xr-x .* 9 .* kubectl-weir\n-rwxr-xr-x .* kubectl_complete-weir\n$`),
	} {
		archive, err := exec.CommandContext(t.Context(), "tar", "-tzvf", filepath.Join(out, "kubectl-weir_"+platform+".tar.gz")).CombinedOutput()
		if err != nil || !want.Match(archive) {
			t.Errorf("the archive of the plugin for %s has %s, %v", platform, archive, err)
		}
	}

	chart := exec.CommandContext(t.Context(), "helm", "template", "weir", "oci://"+at+"/charts/weir", "--version", candidate[1:], "--plain-http")
	objects, err := chart.CombinedOutput()
	if err != nil {
		t.Fatalf("helm template: %v: %s", err, objects)
	}
	for _, program := range programs {
		if reference := at + "/" + program + ":" + candidate; !strings.Contains(string(objects), reference) {
			t.Errorf("the chart does not name %s", reference)
		}
	}
}

func text(t *testing.T, file string) string {
	t.Helper()
	content, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return string(content)
}

// TestWithoutPushNothingIsPushed.
func TestWithoutPushNothingIsPushed(t *testing.T) {
	server := httptest.NewServer(registry.New(registry.Logger(log.New(io.Discard, "", 0))))
	defer server.Close()
	at := strings.TrimPrefix(server.URL, "http://") + "/weir"
	images := t.TempDir()
	built(t, images, candidate)
	var said bytes.Buffer
	args := []string{"-version", candidate, "-registry", at, "-source", "../../..", "-images", images, "-plugins", images, "-out", filepath.Join(t.TempDir(), "release")}
	if err := run(t.Context(), args, &said, &said); err != nil {
		t.Fatal(err)
	}
	host, err := name.NewRegistry(strings.TrimPrefix(server.URL, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	if repositories, err := remote.Catalog(t.Context(), host); err != nil || len(repositories) > 0 {
		t.Errorf("the registry has %q, %v", repositories, err)
	}
	if !strings.Contains(said.String(), "add -push") {
		t.Errorf("it says %q", said.String())
	}
}

func TestErrorsNameTheCure(t *testing.T) {
	images := t.TempDir()
	built(t, images, candidate)
	for name, tt := range map[string]struct {
		version, registry string
		want              string
	}{
		"no version":            {"", "registry.example.com/weir", `-version is "": set it to one like v0.1.0`},
		"a version without a v": {"0.1.0", "registry.example.com/weir", `-version is "0.1.0"`},
		"no registry":           {candidate, "", `-registry is "": name the registry`},
		"a registry by its URL": {candidate, "https://registry.example.com", "-registry is"},
		"other images":          {"v0.9.0-rc.2", "registry.example.com/weir", "run make images VERSION=v0.9.0-rc.2"},
	} {
		t.Run(name, func(t *testing.T) {
			args := []string{"-version", tt.version, "-registry", tt.registry, "-source", "../../..", "-images", images, "-plugins", images, "-out", filepath.Join(t.TempDir(), "release")}
			if err := run(t.Context(), args, new(bytes.Buffer), new(bytes.Buffer)); err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("the error is %v, want %q", err, tt.want)
			}
		})
	}
}
