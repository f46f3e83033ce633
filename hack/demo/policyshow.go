package main

import (
	"context"
	"path/filepath"
)

// overload is how many requests a second are offered; policy.yaml admits 25.
const overload = 100

// A policyShow shows a rate limit.
type policyShow struct {
	*demo
	stores stores
}

func (d *policyShow) prepare(ctx context.Context) error {
	if err := d.stores.start(ctx, filepath.Join(d.dir, "logs"), d.store); err != nil {
		return err
	}
	return d.writeEdits(d.stores.patches())
}

func (d *policyShow) stop() { d.stores.stop() }

func (d *policyShow) play(ctx context.Context) error {
	d.step("applying hack/demo/app.yaml and policy.yaml: 4 pods, and 500 requests per 20s over all of them, counted in %s", d.stores.name(d.store))
	manifest := application(d.tally.Address(), "") + nextDocument + policy(d.stores.spec(d.store))
	if err := d.leave("shop.yaml", manifest); err != nil {
		return err
	}
	if err := d.deploy(ctx, manifest, overload); err != nil {
		return err
	}
	d.step("4 pods are ready, each with an injected sidecar; sending %d requests a second", overload)
	d.showLive(ctx)
	return nil
}
