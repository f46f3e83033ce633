package cluster

import (
	"context"
	"fmt"
	"os"

	"sigs.k8s.io/kind/pkg/cluster/nodes"
	"sigs.k8s.io/kind/pkg/cluster/nodeutils"
)

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
