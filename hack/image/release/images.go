package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/remote"
)

// A build is an image of all architectures.
type build struct {
	name   string
	index  v1.ImageIndex
	digest v1.Hash
}

// built returns the images, which have to be of the version.
func (r *release) built() ([]build, error) {
	var all []build
	for _, program := range programs {
		directory := filepath.Join(r.images, program)
		b, err := read(directory, r.version)
		if err != nil {
			return nil, fmt.Errorf("%s: %w: run make images VERSION=%s", directory, err, r.version)
		}
		b.name = program
		all = append(all, b)
	}
	return all, nil
}

// read returns the image of a version that a layout has.
func read(directory, version string) (build, error) {
	written, err := layout.ImageIndexFromPath(directory)
	if err != nil {
		return build{}, err
	}
	contents, err := written.IndexManifest()
	if err != nil {
		return build{}, err
	}
	for _, m := range contents.Manifests {
		if m.Annotations["org.opencontainers.image.ref.name"] == version {
			index, err := written.ImageIndex(m.Digest)
			return build{index: index, digest: m.Digest}, err
		}
	}
	return build{}, fmt.Errorf("there is no image of version %s", version)
}

// bills copies the lists of the images' contents, without those that another build left.
func (r *release) bills(_ context.Context, all []build) error {
	for _, b := range all {
		contents, err := b.index.IndexManifest()
		if err != nil {
			return err
		}
		files, err := filepath.Glob(filepath.Join(r.images, b.name+"-*.spdx.json"))
		if err != nil {
			return err
		}
		for _, m := range contents.Manifests {
			if err := r.bill(b.name, m.Digest, files); err != nil {
				return err
			}
		}
	}
	return nil
}

// bill copies the one of the lists that names the image.
func (r *release) bill(program string, image v1.Hash, lists []string) error {
	for _, list := range lists {
		text, err := os.ReadFile(list)
		if err != nil {
			return err
		}
		if bytes.Contains(text, []byte(image.Hex)) {
			return os.WriteFile(filepath.Join(r.out, filepath.Base(list)), text, 0o644)
		}
	}
	return fmt.Errorf("no list of what an image of %s is made of names it, %s: run make images VERSION=%s", program, image, r.version)
}

// publish pushes the images, by the credentials that docker and podman keep, and the chart.
func (r *release) publish(ctx context.Context, all []build, out io.Writer) error {
	for _, b := range all {
		tag, err := name.NewTag(r.registry + "/" + b.name + ":" + r.version)
		if err != nil {
			return err
		}
		if err := remote.WriteIndex(tag, b.index, remote.WithContext(ctx), remote.WithAuthFromKeychain(authn.DefaultKeychain)); err != nil {
			return fmt.Errorf("push %s: %w", tag, err)
		}
		fmt.Fprintf(out, "pushed %s@%s\n", tag, b.digest)
	}
	return r.pushChart(ctx, out)
}
