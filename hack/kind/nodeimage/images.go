package nodeimage

import (
	"context"
	"fmt"
	"os/exec"
	"path"
	"path/filepath"
	"strings"
)

// image is a component's image as kubeadm names it.
type image struct{ repository, tag string }

func (i image) name() string { return i.repository + ":" + i.tag }

// components are the images that a control plane consists of, by the last part
// of their names.
var components = []string{"kube-apiserver", "kube-controller-manager", "kube-scheduler", "kube-proxy", "etcd", "coredns", "pause"}

// componentImages asks kubeadm which images its clusters are made of.
func (w *workshop) componentImages(ctx context.Context) (map[string]image, error) {
	version, err := w.moduleVersion(ctx, "hack/kube", "k8s.io/kubernetes")
	if err != nil {
		return nil, err
	}
	list := &exec.Cmd{Path: w.kube, Args: []string{"kubeadm", "config", "images", "list", "--kubernetes-version", version}}
	out, err := list.Output()
	if err != nil {
		return nil, fmt.Errorf("ask kubeadm for its images: %w", err)
	}
	images, err := parseImages(string(out))
	if err != nil {
		return nil, err
	}
	coredns, err := w.moduleVersion(ctx, nodeModule, "github.com/coredns/coredns")
	if err != nil {
		return nil, err
	}
	if wanted := images["coredns"].tag; wanted != coredns {
		return nil, fmt.Errorf("%s/go.mod has CoreDNS %s, but Kubernetes %s asks for %s; change it there", nodeModule, coredns, version, wanted)
	}
	return images, nil
}

// parseImages reads one image a line.
func parseImages(list string) (map[string]image, error) {
	images := map[string]image{}
	for line := range strings.Lines(list) {
		name := strings.TrimSpace(line)
		colon := strings.LastIndexByte(name, ':')
		if colon < 0 {
			return nil, fmt.Errorf("kubeadm lists an image without a tag: %q", name)
		}
		images[path.Base(name[:colon])] = image{name[:colon], name[colon+1:]}
	}
	for _, component := range components {
		if _, ok := images[component]; !ok {
			return nil, fmt.Errorf("kubeadm lists no image of %s", component)
		}
	}
	return images, nil
}

// moduleVersion returns the version of a module that one of the modules in hack
// pins.
func (w *workshop) moduleVersion(ctx context.Context, within, module string) (string, error) {
	list := exec.CommandContext(ctx, "go", "list", "-m", "-f", "{{.Version}}", module)
	list.Dir = filepath.Join(w.checkout, within)
	out, err := list.Output()
	if err != nil {
		return "", fmt.Errorf("find the version of %s in %s: %w", module, within, err)
	}
	return strings.TrimSpace(string(out)), nil
}
