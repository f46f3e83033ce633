package nodeimage

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// nodeModule is where the versions of the programs are pinned.
const nodeModule = "hack/kind/node"

func (w *workshop) buildContainerd(ctx context.Context) error {
	const commands = "github.com/containerd/containerd/v2/cmd/"
	// The snapshotters of other file systems: kind selects none of them.
	return w.goBuild(ctx, "no_aufs,no_btrfs,no_devmapper,no_zfs",
		commands+"containerd", commands+"containerd-shim-runc-v2", commands+"ctr")
}

func (w *workshop) buildPlugins(ctx context.Context) error {
	const plugins = "github.com/containernetworking/plugins/plugins/"
	return w.goBuild(ctx, "", plugins+"main/ptp", plugins+"main/loopback", plugins+"ipam/host-local", plugins+"meta/portmap")
}

func (w *workshop) buildCoreDNS(ctx context.Context) error {
	return w.goBuild(ctx, "", "./coredns", "./pause")
}

// goBuild builds static commands of the node's module into the workshop.
func (w *workshop) goBuild(ctx context.Context, tags string, packages ...string) error {
	args := append([]string{"build", "-trimpath", "-ldflags", "-s -w", "-tags", tags, "-o", w.programs + "/"}, packages...)
	return w.run(ctx, filepath.Join(w.checkout, nodeModule), []string{"CGO_ENABLED=0"}, "go", args...)
}

// provideKubernetes has hack/kube build its programs, or find those it built.
func (w *workshop) provideKubernetes(ctx context.Context) error {
	link := filepath.Join(w.dir, "kubernetes")
	// Programs given from outside are several, and without those of a node.
	if err := w.run(ctx, w.checkout, []string{"KUBEBUILDER_ASSETS="}, filepath.Join(w.checkout, "hack/kube/assets.sh"), link); err != nil {
		return err
	}
	kube, err := filepath.EvalSymlinks(filepath.Join(link, "kube"))
	w.kube = kube
	return err
}

// run executes a command; the error holds what it said.
func (w *workshop) run(ctx context.Context, dir string, env []string, name string, args ...string) error {
	command := exec.CommandContext(ctx, name, args...)
	command.Dir, command.Env = dir, append(os.Environ(), env...)
	if out, err := command.CombinedOutput(); err != nil {
		return fmt.Errorf("%s: %w: %s", filepath.Base(name), err, lastLines(string(out)))
	}
	return nil
}

func lastLines(output string) string {
	lines := strings.Split(strings.TrimSpace(output), "\n")
	return strings.Join(lines[max(0, len(lines)-10):], "\n")
}
