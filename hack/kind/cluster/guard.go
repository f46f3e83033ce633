package cluster

import (
	"context"
	"fmt"
	"net/netip"
	"strings"

	"sigs.k8s.io/kind/pkg/cluster"

	"github.com/weir-dev/weir/hack/kind/docker"
)

// guardScript renders what keeps a cluster's packets to pods and Services on the
// engine's bridge, for nft. It stands behind the nodes' own rules: for a node whose
// rules are missing, nothing on the way out knows these addresses either.
func guardScript(name, bridge string, inside ...netip.Prefix) string {
	var ranges []string
	for _, prefix := range inside {
		ranges = append(ranges, prefix.String())
	}
	return forget(name) + fmt.Sprintf(`table ip %[1]s {
    chain forward {
        type filter hook forward priority filter - 1
        iifname %[2]q oifname != %[2]q ip daddr { %[3]s } jump refuse
    }
    chain refuse {
        meta l4proto tcp counter reject with tcp reset
        counter reject with icmp host-unreachable
    }
}
`, guardTable(name), bridge, strings.Join(ranges, ", "))
}

// guardTable names a cluster's table on the engine's host.
func guardTable(name string) string { return "weir-kind-" + name }

// forget renders the removal of a cluster's table, whether it is there or not.
func forget(name string) string {
	return fmt.Sprintf("table ip %[1]s {}\ndelete table ip %[1]s\n", guardTable(name))
}

// guard keeps the cluster's packets on the engine's bridge.
func (c *Cluster) guard(ctx context.Context, image string) error {
	bridge, err := bridgeOf(ctx, c.engine)
	if err != nil {
		return err
	}
	return onHost(ctx, image, guardScript(c.config.Name, bridge, c.config.Pods, services))
}

// unguard takes back what guard did for a cluster, with the image of one of its nodes.
func unguard(ctx context.Context, provider *cluster.Provider, name string) error {
	nodes, err := provider.ListInternalNodes(name)
	if err != nil || len(nodes) == 0 {
		return err
	}
	image, err := docker.Output(ctx, "inspect", "--format", "{{.Config.Image}}", nodes[0].String())
	if err != nil {
		return err
	}
	return onHost(ctx, image, forget(name))
}

// onHost gives a script to nft in the network of the engine's host, which may be a
// virtual machine, or lack the command: the node image has it.
func onHost(ctx context.Context, image, script string) error {
	return docker.Pipe(ctx, strings.NewReader(script), nil,
		"run", "--rm", "--interactive", "--privileged", "--network", "host", "--pull", "never", "--entrypoint", "nft", image, "-f", "-")
}

// bridgeOf returns the interface of the engine's network that has a subnet.
func bridgeOf(ctx context.Context, subnet netip.Prefix) (string, error) {
	ids, err := docker.Output(ctx, "network", "ls", "--quiet", "--no-trunc", "--filter", "driver=bridge")
	if err != nil {
		return "", err
	}
	const format = `{{.Id}} {{with index .Options "com.docker.network.bridge.name"}}{{.}}{{end}} {{range .IPAM.Config}} {{.Subnet}}{{end}}`
	out, err := docker.Output(ctx, append([]string{"network", "inspect", "--format", format}, strings.Fields(ids)...)...)
	if err != nil {
		return "", err
	}
	return findBridge(out, subnet)
}

// findBridge reads lines of a network's id, the name of its interface where it was
// chosen, and its subnets.
func findBridge(networks string, subnet netip.Prefix) (string, error) {
	for line := range strings.Lines(networks) {
		fields := strings.Fields(line)
		for i, field := range fields {
			switch {
			case field != subnet.String():
			case i > 1 && !strings.Contains(fields[1], "/"):
				return fields[1], nil
			default:
				return "br-" + fields[0][:12], nil // as the engine calls it
			}
		}
	}
	return "", fmt.Errorf("no network of the engine has the subnet %s", subnet)
}
