package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/types"
)

// write replaces what an earlier order of that name wrote, and returns the digest of the
// index of all architectures.
func (o *order) write(images []*image) (v1.Hash, error) {
	if err := os.MkdirAll(o.out, 0o755); err != nil {
		return v1.Hash{}, err
	}
	if err := errors.Join(o.archive(images), o.bills(images)); err != nil {
		return v1.Hash{}, err
	}
	return o.layout(images)
}

// archive writes the image of this machine's architecture, if there is one.
func (o *order) archive(images []*image) error {
	file := filepath.Join(o.out, o.name+".tar")
	mine := host(images)
	if mine == nil {
		return os.RemoveAll(file) // rather than one of another version
	}
	return tarball.WriteToFile(file, o.tag, mine)
}

// bills writes what each image is made of, and leaves no such file of an earlier order.
func (o *order) bills(images []*image) error {
	earlier, err := filepath.Glob(filepath.Join(o.out, o.name+"-linux-*.spdx.json"))
	if err != nil {
		return err
	}
	for _, file := range earlier {
		if err := os.Remove(file); err != nil {
			return err
		}
	}
	for _, i := range images {
		file := filepath.Join(o.out, fmt.Sprintf("%s-linux-%s.spdx.json", o.name, i.architecture))
		if err := os.WriteFile(file, i.bill, 0o644); err != nil {
			return err
		}
	}
	return nil
}

func (o *order) layout(images []*image) (v1.Hash, error) {
	index := mutate.IndexMediaType(empty.Index, types.OCIImageIndex)
	for _, i := range images {
		platform := &v1.Platform{OS: "linux", Architecture: i.architecture}
		index = mutate.AppendManifests(index, mutate.IndexAddendum{Add: i, Descriptor: v1.Descriptor{Platform: platform}})
	}
	directory := filepath.Join(o.out, o.name)
	if err := os.RemoveAll(directory); err != nil {
		return v1.Hash{}, err
	}
	written, err := layout.Write(directory, empty.Index)
	if err != nil {
		return v1.Hash{}, err
	}
	tag := map[string]string{"org.opencontainers.image.ref.name": o.version}
	if err := written.AppendIndex(index, layout.WithAnnotations(tag)); err != nil {
		return v1.Hash{}, err
	}
	return index.Digest()
}
