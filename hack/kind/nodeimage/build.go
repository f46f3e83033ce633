package nodeimage

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/weir-dev/weir/hack/kind/docker"
	"github.com/weir-dev/weir/hack/kind/machine"
	"github.com/weir-dev/weir/hack/kind/progress"
)

// workshop is the directory that one image is put together in.
type workshop struct {
	source
	log      progress.Log
	dir      string
	root     string // the node's root file system
	programs string // what go build wrote
	kube     string // the multi-call binary of hack/kube
}

func (s source) build(ctx context.Context, log progress.Log, archive string) error {
	if err := buildable(); err != nil {
		return err
	}
	dir, err := os.MkdirTemp(filepath.Dir(archive), "build-")
	if err != nil {
		return fmt.Errorf("create a directory to build in: %w", err)
	}
	w := &workshop{source: s, log: log, dir: dir, root: filepath.Join(dir, "root"), programs: filepath.Join(dir, "programs")}
	return errors.Join(log.Do("building the node image "+s.image(), "about 8 minutes when nothing is cached", func() error {
		return w.build(ctx, archive)
	}), os.RemoveAll(dir))
}

func (w *workshop) build(ctx context.Context, archive string) error {
	for _, step := range []struct {
		what, usual string
		run         func(context.Context) error
	}{
		{"providing Kubernetes", "6 minutes the first time, then nothing", w.provideKubernetes},
		{"building containerd", "about 1 minute", w.buildContainerd},
		{"building the network plugins", "about 15 seconds", w.buildPlugins},
		{"building CoreDNS", "about 1 minute", w.buildCoreDNS},
		{"installing Debian", "about 1 minute the first time", w.installDebian},
		{"furnishing the node", "about 5 seconds", w.furnish},
		{"importing the images of the control plane", "about 20 seconds", w.importImages},
		{"saving the node image", "about 10 seconds", func(ctx context.Context) error { return save(ctx, w.image(), archive) }},
	} {
		if err := w.log.Do(step.what, step.usual, func() error { return step.run(ctx) }); err != nil {
			return err
		}
	}
	return nil
}

// save writes an archive that is either whole or not there.
func save(ctx context.Context, image, archive string) error {
	partial := archive + ".partial"
	if _, err := docker.Output(ctx, "save", "--output", partial, image); err != nil {
		return errors.Join(err, os.RemoveAll(partial))
	}
	return os.Rename(partial, archive)
}

// buildable returns why an image cannot be built on this machine.
func buildable() error {
	if os.Geteuid() != 0 {
		return &machine.UnavailableError{
			Reason: "kind's own node image cannot be pulled, and building one needs root",
			Cure:   "run as root, or give the engine access to a registry",
		}
	}
	return nil
}
