package devcluster

import (
	"context"
	"path/filepath"
)

// Upgrade applies the config/default of another checkout over what is installed, and has its
// programs take the place of those that run, at their ports: first that of the webhooks, then
// the controller. Pods stay as they are. cfg is as for Start; it may be of an older version,
// too. Until it returns nothing else may be done with the cluster but to read from its API
// server.
func (c *Cluster) Upgrade(ctx context.Context, cfg Config) error {
	rendered, err := kubectl(ctx, cfg.Assets, nil, "kustomize", filepath.Join(cfg.Root, "config", "default"))
	if err != nil {
		return err
	}
	manifests, deployments, err := adapt(rendered, c.Webhooks.ports.webhook)
	if err != nil {
		return err
	}
	if err := c.Apply(ctx, manifests); err != nil {
		return err
	}
	for _, part := range []struct {
		name    string
		running **Controller
	}{{webhookName, &c.Webhooks}, {controllerName, &c.Controller}} {
		account, err := c.accountOf(ctx, deployments[part.name])
		if err != nil {
			return err
		}
		before := *part.running
		*part.running = newController(cfg, deployments[part.name], account, before.ports)
		before.Stop()
		if err := (*part.running).Start(ctx); err != nil {
			return err
		}
	}
	return nil
}
