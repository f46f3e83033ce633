package main

import (
	"archive/tar"
	"bytes"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/validate"
)

// apache is a licence.
func apache(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile("../../LICENSE")
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// echo writes the module of a small program that prints its arguments and the user it runs
// as, and returns its directory. It uses a package of another module, which has a licence in
// a directory below, too.
func echo(t *testing.T) string {
	t.Helper()
	directory := t.TempDir()
	for file, content := range map[string]string{
		"go.mod":                     "module example.com/echo\n\ngo 1.26\n\nrequire example.com/dep v1.2.0\n\nreplace example.com/dep => ./dep\n",
		"LICENSE":                    apache(t),
		"cmd/echo/main.go":           "package main\n\nimport (\n\t\"os\"\n\n\t\"example.com/dep/user\"\n)\n\nfunc main() { println(len(os.Args), user.ID()) }\n",
		"dep/go.mod":                 "module example.com/dep\n\ngo 1.26\n",
		"dep/COPYING.md":             apache(t),
		"dep/NOTICE":                 "Made by Eve.\n",
		"dep/user/LICENCE.txt":       apache(t),
		"dep/user/user.go":           "package user\n\nimport \"os\"\n\nfunc ID() int { return os.Getuid() }\n",
		"dep/unused/LICENSE":         apache(t),
		"dep/unused/unused.go":       "package unused\n",
		"dep/user/licence.go":        "package user\n",
		"dep/user/LICENSES/about.go": "package about\n",
	} {
		path := filepath.Join(directory, file)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return directory
}

// packed runs the command for one program and returns the directory it wrote to.
func packed(t *testing.T, source, pkg string, more ...string) (out, said string) {
	t.Helper()
	out = t.TempDir()
	args := append([]string{"-name", "echo", "-version", "v1.2.3", "-source", source, "-package", pkg, "-out", out}, more...)
	var stdout bytes.Buffer
	if err := run(t.Context(), args, &stdout, os.Stderr); err != nil {
		t.Fatal(err)
	}
	return out, stdout.String()
}

// index reads the OCI layout that was written, and checks all of its digests.
func index(t *testing.T, out string) v1.ImageIndex {
	t.Helper()
	written, err := layout.ImageIndexFromPath(filepath.Join(out, "echo"))
	if err != nil {
		t.Fatal(err)
	}
	if err := validate.Index(written); err != nil {
		t.Fatal(err)
	}
	top, err := written.IndexManifest()
	if err != nil {
		t.Fatal(err)
	}
	if len(top.Manifests) != 1 || top.Manifests[0].Annotations["org.opencontainers.image.ref.name"] != "v1.2.3" {
		t.Fatalf("the layout holds %+v, want one index tagged v1.2.3", top.Manifests)
	}
	all, err := written.ImageIndex(top.Manifests[0].Digest)
	if err != nil {
		t.Fatal(err)
	}
	return all
}

func digest(t *testing.T, i interface{ Digest() (v1.Hash, error) }) string {
	t.Helper()
	hash, err := i.Digest()
	if err != nil {
		t.Fatal(err)
	}
	return hash.String()
}

func TestTwoBuildsHaveOneDigest(t *testing.T) {
	// From different directories: no path may come in.
	first, _ := packed(t, echo(t), "./cmd/echo")
	second, _ := packed(t, echo(t), "./cmd/echo")
	if a, b := digest(t, index(t, first)), digest(t, index(t, second)); a != b {
		t.Errorf("the first build is %s, the second %s", a, b)
	}
	archives := [2][]byte{}
	for i, out := range []string{first, second} {
		content, err := os.ReadFile(filepath.Join(out, "echo.tar"))
		if err != nil {
			t.Fatal(err)
		}
		archives[i] = content
	}
	if !bytes.Equal(archives[0], archives[1]) {
		t.Error("the archives differ")
	}
}

func TestEachArchitectureHasItsImage(t *testing.T) {
	out, said := packed(t, echo(t), "./cmd/echo")
	manifest, err := index(t, out).IndexManifest()
	if err != nil {
		t.Fatal(err)
	}
	var platforms []string
	for _, m := range manifest.Manifests {
		platforms = append(platforms, m.Platform.String())
	}
	if want := []string{"linux/amd64", "linux/arm64"}; !slices.Equal(platforms, want) {
		t.Errorf("the index holds %q, want %q", platforms, want)
	}
	if want := digest(t, index(t, out)); !strings.Contains(said, want) {
		t.Errorf("it printed %q, without the digest %s", said, want)
	}
}

// TestTheArchiveHoldsOneProgram looks into the archive as a container runtime does.
func TestTheArchiveHoldsOneProgram(t *testing.T) {
	out, _ := packed(t, echo(t), "./cmd/echo", "-architectures", runtime.GOARCH)
	tag, err := name.NewTag("echo:v1.2.3")
	if err != nil {
		t.Fatal(err)
	}
	i, err := tarball.ImageFromPath(filepath.Join(out, "echo.tar"), &tag)
	if err != nil {
		t.Fatal(err)
	}
	config, err := i.ConfigFile()
	if err != nil {
		t.Fatal(err)
	}
	if config.Config.User != "65532:65532" || !slices.Equal(config.Config.Entrypoint, []string{"/echo"}) || config.Architecture != runtime.GOARCH {
		t.Errorf("user %q, entrypoint %q, architecture %q", config.Config.User, config.Config.Entrypoint, config.Architecture)
	}
	if !config.Created.IsZero() {
		t.Errorf("it says when it was made: %s", config.Created)
	}
	files := contents(t, i)
	if names, want := slices.Sorted(maps.Keys(files)), []string{
		"echo", "etc/ssl/certs/ca-certificates.crt",
		"licenses/example.com/dep/COPYING.md", "licenses/example.com/dep/NOTICE", "licenses/example.com/dep/user/LICENCE.txt",
		"licenses/example.com/echo/LICENSE",
		"licenses/golang.org/x/crypto/x509roots/fallback/LICENSE",
		"licenses/std/LICENSE", "licenses/std/PATENTS",
	}; !slices.Equal(names, want) {
		t.Fatalf("it holds %q, want %q", names, want)
	}
	if text := string(files["licenses/example.com/dep/NOTICE"]); text != "Made by Eve.\n" {
		t.Errorf("the notice is %q", text)
	}
	checkAuthorities(t, files["etc/ssl/certs/ca-certificates.crt"])

	program := filepath.Join(t.TempDir(), "echo")
	if err := os.WriteFile(program, files["echo"], 0o755); err != nil {
		t.Fatal(err)
	}
	if got, err := exec.CommandContext(t.Context(), program).CombinedOutput(); err != nil || !strings.HasPrefix(string(got), "1 ") {
		t.Errorf("the program says %q (%v)", got, err)
	}
}

// contents reads all files of an image.
func contents(t *testing.T, i v1.Image) map[string][]byte {
	t.Helper()
	files := map[string][]byte{}
	all := mutate.Extract(i)
	defer all.Close()
	for r := tar.NewReader(all); ; {
		header, err := r.Next()
		if errors.Is(err, io.EOF) {
			return files
		}
		if err != nil {
			t.Fatal(err)
		}
		if header.Uid != 0 || header.Mode&0o022 != 0 || header.ModTime.Unix() != 0 {
			t.Errorf("%s: owner %d, mode %o, time %s", header.Name, header.Uid, header.Mode, header.ModTime)
		}
		if files[header.Name], err = io.ReadAll(r); err != nil {
			t.Fatal(err)
		}
	}
}

func checkAuthorities(t *testing.T, file []byte) {
	t.Helper()
	found := 0
	for block, rest := pem.Decode(file); block != nil; block, rest = pem.Decode(rest) {
		certificate, err := x509.ParseCertificate(block.Bytes)
		if err != nil || !certificate.IsCA {
			t.Fatalf("certificate %d is not of an authority (%v)", found, err)
		}
		found++
	}
	if found < 50 {
		t.Errorf("there are %d authorities only", found)
	}
}

func TestWrongOrders(t *testing.T) {
	source := echo(t)
	for _, tc := range []struct {
		says string
		args []string
	}{
		{"-name is empty", []string{"-package", "./cmd/echo"}},
		{"-package is empty", []string{"-name", "echo"}},
		{"unexpected argument", []string{"-name", "echo", "-package", "./cmd/echo", "amd64"}},
		{"go build ./cmd/absent", []string{"-name", "echo", "-package", "./cmd/absent"}},
		{"the limit is 0.0 MiB", []string{"-name", "echo", "-package", "./cmd/echo", "-limit", "0"}},
		{"make no tag", []string{"-name", "echo", "-package", "./cmd/echo", "-version", "v1 beta"}},
	} {
		args := append([]string{"-source", source, "-out", t.TempDir(), "-architectures", runtime.GOARCH}, tc.args...)
		if err := run(t.Context(), args, io.Discard, io.Discard); err == nil || !strings.Contains(err.Error(), tc.says) {
			t.Errorf("%q: got %v, want an error with %q", tc.args, err, tc.says)
		}
	}
}
