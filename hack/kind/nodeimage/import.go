package nodeimage

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/weir-dev/weir/hack/kind/docker"
)

//go:embed import.sh
var importScript string

//go:embed closure.sh
var closureScript string

// importImages makes the component images, and an image of the node that has
// them in its store.
func (w *workshop) importImages(ctx context.Context) (err error) {
	images, err := w.componentImages(ctx)
	if err != nil {
		return err
	}
	base := w.image() + "-base"
	scraps := []string{base}
	defer func() {
		_, gone := docker.Output(context.WithoutCancel(ctx), append([]string{"image", "rm"}, scraps...)...)
		err = errors.Join(err, gone)
	}()
	if err := tarImport(ctx, base, nil, "-C", w.root, "."); err != nil {
		return err
	}
	names, err := w.makeComponents(ctx, images)
	scraps = append(scraps, names...)
	if err != nil {
		return err
	}
	return w.stock(ctx, base, names)
}

// stock runs a container of the base, reads the named images into its store and
// makes the node image of it.
func (w *workshop) stock(ctx context.Context, base string, names []string) (err error) {
	container := "weir-node-" + w.key
	defer func() {
		_, gone := docker.Output(context.WithoutCancel(ctx), "rm", "--force", "--volumes", container)
		err = errors.Join(err, gone)
	}()
	archive, writer := io.Pipe()
	saved := make(chan error, 1)
	go func() {
		err := docker.Pipe(ctx, nil, writer, append([]string{"save"}, names...)...)
		saved <- errors.Join(err, writer.CloseWithError(err))
	}()
	err = docker.Pipe(ctx, archive, nil, "run", "--interactive", "--name", container, "--privileged", "--tmpfs", "/run", "--tmpfs", "/tmp",
		"--stop-signal", "SIGRTMIN+3", // what systemd ends on; the image inherits it
		"--entrypoint", "bash", base, "-euo", "pipefail", "-c", importScript)
	if err := errors.Join(err, archive.CloseWithError(err), <-saved); err != nil {
		return err
	}
	_, err = docker.Output(ctx, "commit",
		"--change", `ENTRYPOINT ["/usr/local/bin/entrypoint", "/sbin/init"]`, "--change", "CMD []",
		"--change", "ENV container=docker", // shows systemd where it is
		container, w.image())
	return err
}

// makeComponents makes the component images and returns their names as far as
// they were made. Those of Kubernetes are one image with several names: each
// calls the multi-call binary by another link.
func (w *workshop) makeComponents(ctx context.Context, images map[string]image) ([]string, error) {
	dir := filepath.Join(w.dir, "components")
	const bin = "usr/local/bin"
	if err := os.MkdirAll(filepath.Join(dir, bin), 0o755); err != nil {
		return nil, err
	}
	kubernetes := []string{"kube-apiserver", "kube-controller-manager", "kube-scheduler", "kube-proxy", "etcd"}
	if err := os.Link(filepath.Join(w.root, "usr/bin/kube"), filepath.Join(dir, bin, "kube")); err != nil {
		return nil, err
	}
	for _, program := range kubernetes {
		if err := os.Symlink("kube", filepath.Join(dir, bin, program)); err != nil {
			return nil, err
		}
	}
	closure, err := w.proxyClosure(ctx)
	if err != nil {
		return nil, err
	}
	first := images[kubernetes[0]].name()
	content := append([]string{"-C", dir, bin, "-C", w.root}, closure...)
	err = tarImport(ctx, first, []string{"ENV PATH=/usr/local/bin:/usr/sbin:/usr/bin"}, content...)
	if err != nil {
		return nil, err
	}
	names := []string{first}
	for _, program := range kubernetes[1:] {
		if _, err := docker.Output(ctx, "tag", first, images[program].name()); err != nil {
			return names, err
		}
		names = append(names, images[program].name())
	}
	for _, program := range []string{"coredns", "pause"} {
		err := tarImport(ctx, images[program].name(), []string{fmt.Sprintf(`ENTRYPOINT ["/%s"]`, program)}, "-C", w.programs, program)
		if err != nil {
			return names, err
		}
		names = append(names, images[program].name())
	}
	return names, nil
}

// proxyClosure lists the files of the node that kube-proxy's iptables consists
// of, relative to its root.
func (w *workshop) proxyClosure(ctx context.Context) ([]string, error) {
	list := exec.CommandContext(ctx, "chroot", w.root, "bash", "-euo", "pipefail", "-c", closureScript)
	out, err := list.Output()
	if err != nil {
		return nil, fmt.Errorf("list the files of iptables: %w", err)
	}
	return strings.Fields(string(out)), nil
}

// tarImport makes an image with one layer of the files that tar's arguments select.
func tarImport(ctx context.Context, name string, changes []string, content ...string) error {
	args := []string{"import"}
	for _, change := range changes {
		args = append(args, "--change", change)
	}
	var complaint strings.Builder
	tar := exec.CommandContext(ctx, "tar", append([]string{"--create", "--numeric-owner"}, content...)...)
	tar.Stderr = &complaint
	layer, err := tar.StdoutPipe()
	if err != nil {
		return err
	}
	if err := tar.Start(); err != nil {
		return err
	}
	err = docker.Pipe(ctx, layer, nil, append(args, "-", name)...)
	if ended := tar.Wait(); ended != nil {
		return errors.Join(fmt.Errorf("tar: %w: %s", ended, complaint.String()), err)
	}
	return err
}
