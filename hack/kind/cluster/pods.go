package cluster

import (
	"bytes"
	"context"
	"fmt"
	"net/netip"
	"strings"

	"sigs.k8s.io/kind/pkg/cluster/nodes"

	"github.com/weir-dev/weir/hack/kind/docker"
)

// setUpNetwork gives every node its pods' subnet and routes to the others', and keeps
// what is addressed to pods and Services in.
func (c *Cluster) setUpNetwork(ctx context.Context, image string) error {
	assigned, err := c.awaitNodes(ctx)
	if err != nil {
		return err
	}
	c.network = nil
	for _, name := range c.names {
		c.network = append(c.network, assigned[name])
	}
	if c.engine, err = networkOf(ctx, c.network[0].Address); err != nil {
		return err
	}
	if err := c.guard(ctx, image); err != nil {
		return err
	}
	return c.onAll(ctx, func(ctx context.Context, node nodes.Node) error {
		own := assigned[node.String()]
		return script(ctx, node, networkScript(own, c.config.Pods, c.engine)+
			routeScript(c.config.Pods, without(c.network, own.Name)))
	})
}

// Join lets the pods of both clusters reach each other by their own addresses.
// Their Services and names stay apart. Joining again changes nothing. A cluster
// that is created again has to be joined again.
func (c *Cluster) Join(ctx context.Context, other *Cluster) error {
	if c.config.Pods.Overlaps(other.config.Pods) {
		return fmt.Errorf("clusters %s and %s cannot be joined: their pods share addresses (%s, %s); create one with other Pods",
			c.config.Name, other.config.Name, c.config.Pods, other.config.Pods)
	}
	if c.engine != other.engine {
		return fmt.Errorf("clusters %s and %s cannot be joined: they are in different networks of the engine (%s, %s)",
			c.config.Name, other.config.Name, c.engine, other.engine)
	}
	for _, direction := range [][2]*Cluster{{c, other}, {other, c}} {
		from, to := direction[0], direction[1]
		err := from.onAll(ctx, func(ctx context.Context, node nodes.Node) error {
			return script(ctx, node, routeScript(to.config.Pods, to.network))
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// networkOf returns the engine's network that an address is in.
func networkOf(ctx context.Context, address netip.Addr) (netip.Prefix, error) {
	networks, err := engineNetworks(ctx)
	if err != nil {
		return netip.Prefix{}, err
	}
	for _, network := range networks {
		if network.Contains(address) {
			return network, nil
		}
	}
	return netip.Prefix{}, fmt.Errorf("no network of the engine contains the node's address %s", address)
}

// script runs a shell script on a node.
func script(ctx context.Context, node nodes.Node, text string) error {
	var out bytes.Buffer
	command := node.CommandContext(ctx, "sh", "-eu", "-s").SetStdin(strings.NewReader(text)).SetStdout(&out).SetStderr(&out)
	if err := command.Run(); err != nil {
		return fmt.Errorf("%w: %s", err, bytes.TrimSpace(out.Bytes()))
	}
	return nil
}

// Exec runs a command on a node, as root, and returns what it writes to standard
// output. The error holds what it writes to standard error.
func (c *Cluster) Exec(ctx context.Context, node string, command ...string) ([]byte, error) {
	if _, ok := c.byName[node]; !ok {
		return nil, fmt.Errorf("cluster %s has no node %q: its nodes are %s", c.config.Name, node, strings.Join(c.names, ", "))
	}
	var out bytes.Buffer
	err := docker.Pipe(ctx, nil, &out, append([]string{"exec", "--privileged", node}, command...)...)
	return out.Bytes(), err
}
