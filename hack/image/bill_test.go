package main

import (
	"bytes"
	"debug/buildinfo"
	"maps"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	spdxjson "github.com/spdx/tools-golang/json"
	"github.com/spdx/tools-golang/spdx"
	"github.com/spdx/tools-golang/spdxlib"
)

func TestAnImageHasABill(t *testing.T) {
	first, _ := packed(t, echo(t), "./cmd/echo")
	for _, architecture := range []string{"amd64", "arm64"} {
		checkBill(t, first, architecture, "echo")
	}
	second, _ := packed(t, echo(t), "./cmd/echo", "-architectures", runtime.GOARCH)
	if a, b := billText(t, first, runtime.GOARCH), billText(t, second, runtime.GOARCH); !bytes.Equal(a, b) {
		t.Error("two builds have two bills")
	}
}

// TestOnlyBillsOfTheLastOrderStay: one of another version would be taken for the image's.
func TestOnlyBillsOfTheLastOrderStay(t *testing.T) {
	source := echo(t)
	out, _ := packed(t, source, "./cmd/echo")
	args := []string{"-name", "echo", "-version", "v2", "-source", source, "-package", "./cmd/echo", "-out", out, "-architectures", runtime.GOARCH}
	if err := run(t.Context(), args, &bytes.Buffer{}, os.Stderr); err != nil {
		t.Fatal(err)
	}
	if all, err := filepath.Glob(filepath.Join(out, "*.spdx.json")); err != nil || len(all) != 1 {
		t.Errorf("there are %q (%v)", all, err)
	}
}

func billText(t *testing.T, out, architecture string) []byte {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(out, "echo-linux-"+architecture+".spdx.json"))
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// checkBill holds the bill of an image to the image: to what the program in it says of
// itself, and to the licences that are there.
func checkBill(t *testing.T, out, architecture, program string) {
	t.Helper()
	bill, err := spdxjson.Read(bytes.NewReader(billText(t, out, architecture)))
	if err != nil {
		t.Fatalf("the bill is not an SPDX document: %v", err)
	}
	if err := spdxlib.ValidateDocument(bill); err != nil {
		t.Errorf("the bill is not valid: %v", err)
	}
	i, of := imageOf(t, out, architecture)
	files := contents(t, i)
	info, err := buildinfo.Read(bytes.NewReader(files[program]))
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]string{info.Main.Path: "v1.2.3", "std": info.GoVersion, "echo": "v1.2.3"}
	sums := map[string]string{}
	for _, dep := range info.Deps {
		want[dep.Path], sums[dep.Path] = dep.Version, dep.Sum
	}
	got := map[string]string{}
	for _, p := range bill.Packages {
		got[p.PackageName] = p.PackageVersion
		checkPart(t, p, files, sums[p.PackageName])
	}
	const roots = "golang.org/x/crypto/x509roots/fallback"
	if got[roots] == "" {
		t.Error("the authorities are not in the bill")
	}
	delete(got, roots)
	if !maps.Equal(got, want) {
		t.Errorf("the bill has %v, the program is made of %v", got, want)
	}
	if whole := bill.Packages[0]; len(whole.PackageChecksums) != 1 || whole.PackageChecksums[0].Value != of.Hex || !strings.Contains(bill.DocumentNamespace, of.Hex) {
		t.Errorf("the bill is not of the image %s: %+v", of, whole)
	}
	if described, err := spdxlib.GetDescribedPackageIDs(bill); err != nil || !slices.Equal(described, []spdx.ElementID{"Image"}) {
		t.Errorf("the bill describes %v (%v)", described, err)
	}
}

// checkPart looks for the licence of a part and the sum of its module.
func checkPart(t *testing.T, p *spdx.Package, files map[string][]byte, sum string) {
	t.Helper()
	if p.PackageName == "echo" { // the image itself
		return
	}
	if p.PackageLicenseDeclared == "" || p.PackageLicenseDeclared == unsaid {
		t.Errorf("%s has the licence %q", p.PackageName, p.PackageLicenseDeclared)
	}
	if !strings.Contains(p.PackageSourceInfo, sum) {
		t.Errorf("%s has not the sum %s: %s", p.PackageName, sum, p.PackageSourceInfo)
	}
	texts := 0
	for name, content := range files {
		if strings.HasPrefix(name, "licenses/"+p.PackageName+"/") && len(content) > 0 {
			texts++
		}
	}
	if texts == 0 {
		t.Errorf("%s has no text of its licence in the image", p.PackageName)
	}
}

// imageOf returns the image of an architecture, and its digest.
func imageOf(t *testing.T, out, architecture string) (v1.Image, v1.Hash) {
	t.Helper()
	all := index(t, out)
	manifest, err := all.IndexManifest()
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range manifest.Manifests {
		if m.Platform.Architecture == architecture {
			i, err := all.Image(m.Digest)
			if err != nil {
				t.Fatal(err)
			}
			return i, m.Digest
		}
	}
	t.Fatalf("there is no image for %s", architecture)
	return nil, v1.Hash{}
}
