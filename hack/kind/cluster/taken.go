package cluster

import (
	"archive/tar"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"regexp"
	"strings"

	"sigs.k8s.io/kind/pkg/cluster"

	"github.com/weir-dev/weir/hack/kind/docker"
)

// services is the range of the Services, in every cluster.
var services = netip.MustParsePrefix("10.96.0.0/16")

// taken lists the ranges that pods must not use: those of this machine's
// interfaces, of the engine's networks and of other clusters' pods.
func taken(ctx context.Context, provider *cluster.Provider) ([]netip.Prefix, error) {
	prefixes := []netip.Prefix{services}
	interfaces, err := net.InterfaceAddrs()
	if err != nil {
		return nil, fmt.Errorf("list this machine's addresses: %w", err)
	}
	for _, address := range interfaces {
		if prefix, err := netip.ParsePrefix(address.String()); err == nil {
			prefixes = append(prefixes, prefix.Masked())
		}
	}
	networks, err := engineNetworks(ctx)
	if err != nil {
		return nil, err
	}
	prefixes = append(prefixes, networks...)
	names, err := provider.List()
	if err != nil {
		return nil, err
	}
	for _, name := range names {
		pods, err := podsOf(ctx, provider, name)
		if err != nil {
			return nil, err
		}
		prefixes = append(prefixes, pods)
	}
	return prefixes, nil
}

func engineNetworks(ctx context.Context) ([]netip.Prefix, error) {
	ids, err := docker.Output(ctx, "network", "ls", "--quiet", "--filter", "driver=bridge")
	if err != nil || ids == "" {
		return nil, err
	}
	const format = `{{range .IPAM.Config}}{{.Subnet}} {{end}}`
	out, err := docker.Output(ctx, append([]string{"network", "inspect", "--format", format}, strings.Fields(ids)...)...)
	if err != nil {
		return nil, err
	}
	var prefixes []netip.Prefix
	for subnet := range strings.FieldsSeq(out) {
		prefix, err := netip.ParsePrefix(subnet)
		if err != nil {
			return nil, fmt.Errorf("a network of the engine: %w", err)
		}
		prefixes = append(prefixes, prefix)
	}
	return prefixes, nil
}

// podsOf reads another cluster's range from kubeadm's configuration on one of
// its nodes, which may be stopped.
func podsOf(ctx context.Context, provider *cluster.Provider, name string) (netip.Prefix, error) {
	nodes, err := provider.ListInternalNodes(name)
	if err != nil || len(nodes) == 0 {
		return netip.Prefix{}, fmt.Errorf("list the nodes of cluster %s: %w", name, err)
	}
	var archive bytes.Buffer
	if err := docker.Pipe(ctx, nil, &archive, "cp", nodes[0].String()+":/kind/kubeadm.conf", "-"); err != nil {
		return netip.Prefix{}, fmt.Errorf("%w (if cluster %s is half created, delete it first)", err, name)
	}
	files := tar.NewReader(&archive)
	if _, err := files.Next(); err != nil {
		return netip.Prefix{}, fmt.Errorf("read the pod range of cluster %s: %w", name, err)
	}
	content, err := io.ReadAll(files)
	if err != nil {
		return netip.Prefix{}, fmt.Errorf("read the pod range of cluster %s: %w", name, err)
	}
	return parsePods(string(content))
}

var podSubnet = regexp.MustCompile(`(?m)^\s*podSubnet: "?([0-9./]+)`)

func parsePods(kubeadm string) (netip.Prefix, error) {
	match := podSubnet.FindStringSubmatch(kubeadm)
	if match == nil {
		return netip.Prefix{}, errors.New("kubeadm's configuration names no podSubnet")
	}
	return netip.ParsePrefix(match[1])
}
