package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/google/go-containerregistry/pkg/name"
)

// manifest writes install.yaml, with images by registry, tag and digest.
func (r *release) manifest(ctx context.Context, all []build) error {
	images := make([]string, len(all))
	for i, b := range all {
		images[i] = fmt.Sprintf("%s=%s/%s:%s@%s", b.name, r.registry, b.name, r.version, b.digest)
	}
	args := append([]string{filepath.Join(r.out, "install.yaml")}, images...)
	return call(ctx, r.source, filepath.Join(r.source, "hack", "install-manifest.sh"), args...)
}

// chart packs the chart with the version and the images of the release.
func (r *release) chart(ctx context.Context, all []build) error {
	scratch, err := os.MkdirTemp("", "release-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(scratch)
	directory := filepath.Join(scratch, "weir")
	if err := os.CopyFS(directory, os.DirFS(filepath.Join(r.source, "charts", "weir"))); err != nil {
		return err
	}
	if err := r.setImages(filepath.Join(directory, "values.yaml"), all); err != nil {
		return err
	}
	return call(ctx, scratch, "helm", "package", directory,
		"--version", strings.TrimPrefix(r.version, "v"), "--app-version", r.version, "--destination", r.out)
}

// setImages makes the images of the registry the default.
func (r *release) setImages(file string, all []build) error {
	values, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	text := string(values)
	for _, b := range all {
		line := "repository: " + b.name + "\n"
		if n := strings.Count(text, line); n != 1 {
			return fmt.Errorf("%s has %q %d times, want once", file, line, n)
		}
		text = strings.Replace(text, line, "repository: "+r.registry+"/"+b.name+"\n", 1)
	}
	return os.WriteFile(file, []byte(text), 0o644)
}

func (r *release) archive() string {
	return filepath.Join(r.out, "weir-"+strings.TrimPrefix(r.version, "v")+".tgz")
}

// pushChart pushes the chart beside the images.
func (r *release) pushChart(ctx context.Context, out io.Writer) error {
	args := []string{"push", r.archive(), "oci://" + r.registry + "/charts"}
	if of, err := name.NewRepository(r.registry + "/charts"); err == nil && of.Scheme() == "http" {
		args = append(args, "--plain-http") // to this machine, as images are pushed
	}
	if err := call(ctx, r.out, "helm", args...); err != nil {
		return err
	}
	fmt.Fprintf(out, "pushed %s to oci://%s/charts\n", filepath.Base(r.archive()), r.registry)
	return nil
}

// call runs a program, and returns what it wrote when it failed.
func call(ctx context.Context, directory, program string, args ...string) error {
	command := exec.CommandContext(ctx, program, args...)
	command.Dir = directory
	if said, err := command.CombinedOutput(); err != nil {
		return fmt.Errorf("%s %s: %w: %s", filepath.Base(program), strings.Join(args, " "), err, strings.TrimSpace(string(said)))
	}
	return nil
}
