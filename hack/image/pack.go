package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"io"
	"os"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/types"
)

// user owns no file and has no name: pods may demand a user that is not root by number.
const user = "65532:65532"

// image is one architecture's.
type image struct {
	v1.Image
	architecture string
	pulled       int64  // bytes, compressed
	unpacked     int64  // bytes
	bill         []byte // of materials: an SPDX document
}

// image puts a binary into an image of its own, with the licences of the modules.
func (o *order) image(architecture, binary string, modules []*module) (*image, error) {
	program, err := os.ReadFile(binary)
	if err != nil {
		return nil, err
	}
	authorities := authorities()
	var texts []file
	for _, m := range modules {
		texts = append(texts, m.files()...)
	}
	// Files that change seldom have layers of their own, below.
	below, err := layer(file{"etc/ssl/certs/ca-certificates.crt", 0o644, authorities})
	if err != nil {
		return nil, err
	}
	between, err := layer(texts...)
	if err != nil {
		return nil, err
	}
	above, err := layer(file{o.base(), 0o755, program})
	if err != nil {
		return nil, err
	}
	base := mutate.ConfigMediaType(mutate.MediaType(empty.Image, types.OCIManifestSchema1), types.OCIConfigJSON)
	packed, err := mutate.AppendLayers(base, below, between, above)
	if err != nil {
		return nil, err
	}
	packed, err = mutate.ConfigFile(packed, o.config(architecture, packed))
	if err != nil {
		return nil, err
	}
	pulled, err := pulled(packed)
	if err != nil {
		return nil, err
	}
	digest, err := packed.Digest()
	if err != nil {
		return nil, err
	}
	bill, err := o.bill(architecture, digest, program, modules)
	unpacked := len(program) + len(authorities)
	for _, text := range texts {
		unpacked += len(text.content)
	}
	return &image{packed, architecture, pulled, int64(unpacked), bill}, err
}

// config says how the program is run. It has no time of creation.
func (o *order) config(architecture string, packed v1.Image) *v1.ConfigFile {
	config, _ := packed.ConfigFile() // of an image in memory
	config = config.DeepCopy()
	config.OS, config.Architecture = "linux", architecture
	config.Config = v1.Config{
		User:       user,
		WorkingDir: "/",
		Entrypoint: []string{"/" + o.base()},
		Labels: map[string]string{
			"org.opencontainers.image.title":   o.name,
			"org.opencontainers.image.version": o.version,
		},
	}
	return config
}

type file struct {
	name    string
	mode    int64
	content []byte
}

// layer holds files, which root owns, with no time but the epoch.
func layer(files ...file) (v1.Layer, error) {
	var archive bytes.Buffer
	w := tar.NewWriter(&archive)
	for _, f := range files {
		header := &tar.Header{Typeflag: tar.TypeReg, Name: f.name, Mode: f.mode, Size: int64(len(f.content)), Format: tar.FormatUSTAR}
		if err := w.WriteHeader(header); err != nil {
			return nil, err
		}
		if _, err := w.Write(f.content); err != nil {
			return nil, err
		}
	}
	if err := w.Close(); err != nil {
		return nil, err
	}
	open := func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(archive.Bytes())), nil }
	return tarball.LayerFromOpener(open, tarball.WithMediaType(types.OCILayer),
		tarball.WithCompressionLevel(gzip.BestCompression), tarball.WithCompressedCaching)
}

// pulled returns how many bytes of an image cross the network.
func pulled(i v1.Image) (int64, error) {
	manifest, err := i.Manifest()
	if err != nil {
		return 0, err
	}
	total := manifest.Config.Size
	for _, l := range manifest.Layers {
		total += l.Size
	}
	return total, nil
}
