package cluster

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"slices"

	"golang.org/x/sync/errgroup"
	"k8s.io/client-go/kubernetes"
	"sigs.k8s.io/kind/pkg/cluster"
	"sigs.k8s.io/kind/pkg/cluster/nodes"

	"github.com/weir-dev/weir/hack/kind/engine"
	"github.com/weir-dev/weir/hack/kind/machine"
	"github.com/weir-dev/weir/hack/kind/nodeimage"
	"github.com/weir-dev/weir/hack/kind/progress"
)

// Cluster is a running cluster. Its methods may be called at the same time.
type Cluster struct {
	config Config
	log    progress.Log
	client kubernetes.Interface
	names  []string // of the nodes, the control plane's first
	byName map[string]nodes.Node

	network []nodeNetwork // in the order of names
	engine  netip.Prefix  // the engine's network that the nodes are in
}

// UnavailableError says why this machine cannot run a cluster, and the cure.
type UnavailableError = machine.UnavailableError

// Check returns an *UnavailableError when this machine can never run a cluster.
// It changes nothing, and does not ask whether a registry can be reached.
func Check(ctx context.Context) error { return machine.Check(ctx) }

// Create makes a cluster and returns when its nodes are ready, CoreDNS and
// kube-proxy run and pods can be created. The remains of a cluster of
// that name are deleted first. It blocks for minutes where the engine or the node
// image are missing, else for less than one. When it fails, nothing of the
// cluster is left. The context ends the waits, but not the steps of kind.
func Create(ctx context.Context, c Config) (*Cluster, error) {
	if err := c.validate(); err != nil {
		return nil, err
	}
	log := progress.Log{W: c.Progress}
	if err := engine.Ensure(ctx, log); err != nil {
		return nil, err
	}
	image, err := nodeimage.Ensure(ctx, log)
	if err != nil {
		return nil, err
	}
	lock, err := oneAtATime(log)
	if err != nil {
		return nil, err
	}
	defer lock.Close()
	provider := newProvider(log)
	if err := provider.Delete(c.Name, c.Kubeconfig); err != nil {
		return nil, fmt.Errorf("delete what is left of cluster %s: %w", c.Name, err)
	}
	inUse, err := taken(ctx, provider)
	if err != nil {
		return nil, err
	}
	if c.Pods, err = choose(c.Pods, inUse); err != nil {
		return nil, err
	}
	created := &Cluster{config: c, log: log}
	what := fmt.Sprintf("creating cluster %s, %d nodes with pods in %s", c.Name, c.Workers+1, c.Pods)
	err = log.Do(what, "15 to 60 seconds", func() error { return created.create(ctx, provider, image) })
	if err != nil {
		return nil, errors.Join(err, remove(context.WithoutCancel(ctx), provider, c.Name, c.Kubeconfig))
	}
	return created, nil
}

func (c *Cluster) create(ctx context.Context, provider *cluster.Provider, image string) error {
	h, err := describeHost(ctx)
	if err != nil {
		return err
	}
	err = provider.Create(c.config.Name,
		cluster.CreateWithV1Alpha4Config(c.config.render(image, h)),
		cluster.CreateWithKubeconfigPath(c.config.Kubeconfig),
		cluster.CreateWithRetain(true)) // the caller deletes, the engine's network too
	if err != nil {
		return err
	}
	if err := context.Cause(ctx); err != nil {
		return err
	}
	if err := c.attach(provider); err != nil {
		return err
	}
	if err := c.setUpNetwork(ctx, image); err != nil {
		return err
	}
	return c.awaitReady(ctx)
}

// attach finds the nodes and opens a client.
func (c *Cluster) attach(provider *cluster.Provider) error {
	list, err := provider.ListInternalNodes(c.config.Name)
	if err != nil {
		return err
	}
	c.byName = make(map[string]nodes.Node, len(list))
	for _, node := range list {
		c.names = append(c.names, node.String())
		c.byName[node.String()] = node
	}
	slices.Sort(c.names) // "-control-plane" sorts before "-worker"
	credentials, err := provider.KubeConfig(c.config.Name, false)
	if err != nil {
		return err
	}
	c.client, err = newClient([]byte(credentials))
	return err
}

// Nodes returns the nodes' names, the control plane's first. They are those of
// the Kubernetes nodes and of the engine's containers.
func (c *Cluster) Nodes() []string { return slices.Clone(c.names) }

// Delete removes the nodes, their volumes and the credentials from the
// kubeconfig file, and the file when nothing else is in it. The last cluster
// takes kind's network of the engine with it. The engine goes on running.
func (c *Cluster) Delete(ctx context.Context) error {
	return Delete(ctx, c.config.Name, c.config.Kubeconfig, c.config.Progress)
}

// onAll runs a function for every node at the same time.
func (c *Cluster) onAll(ctx context.Context, run func(context.Context, nodes.Node) error) error {
	group, ctx := errgroup.WithContext(ctx)
	for _, name := range c.names {
		group.Go(func() error {
			if err := run(ctx, c.byName[name]); err != nil {
				return fmt.Errorf("node %s: %w", name, err)
			}
			return nil
		})
	}
	return group.Wait()
}
