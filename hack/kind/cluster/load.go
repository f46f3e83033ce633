package cluster

import (
	"context"
	"fmt"
	"io"
	"os"

	"sigs.k8s.io/kind/pkg/cluster/nodes"
	"sigs.k8s.io/kind/pkg/cluster/nodeutils"

	"github.com/weir-dev/weir/hack/kind/progress"
)

// Load puts the images of docker-archives into the nodes of a cluster by its name, as
// Cluster.Load does, whichever process created it.
func Load(ctx context.Context, name string, to io.Writer, archives ...string) error {
	c := &Cluster{config: Config{Name: name, Progress: to}, log: progress.Log{W: to}}
	if err := c.attach(newProvider(c.log)); err != nil {
		return fmt.Errorf("cluster %s: %w: create it with `kind up -name %s`", name, err, name)
	}
	return c.Load(ctx, archives...)
}

// Load puts the images of docker-archives (`docker save`) into the store of
// every node. Pods must use them with a pull policy other than Always, which is
// the default for the tag latest.
func (c *Cluster) Load(ctx context.Context, archives ...string) error {
	for _, archive := range archives {
		err := c.onAll(ctx, func(_ context.Context, node nodes.Node) error { return load(node, archive) })
		if err != nil {
			return fmt.Errorf("load %s: %w", archive, err)
		}
	}
	return nil
}

func load(node nodes.Node, archive string) error {
	file, err := os.Open(archive)
	if err != nil {
		return err
	}
	defer file.Close()
	return nodeutils.LoadImageArchive(node, file)
}
