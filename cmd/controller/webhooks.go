package main

import (
	"github.com/weir-dev/weir/internal/inject"
	"github.com/weir-dev/weir/internal/version"
	"github.com/weir-dev/weir/internal/webhook"
)

// addWebhooks has every replica serve the admission webhooks.
func (p *platform) addWebhooks() {
	o := p.options
	pods := &webhook.PodInjector{
		Namespaces:     p.manager.GetClient(),
		LiveNamespaces: p.live,
		Snapshots:      p.snapshots,
		Events:         p.manager.GetEventRecorder("weir-injector"),
		CABundle:       p.certificates.CABundle,
		Config: inject.Config{
			Version:         version.String(),
			Image:           o.sidecarImage,
			FleetAddress:    o.fleetAddress,
			FleetServerName: o.service(fleetService),
		},
	}
	webhook.Register(p.manager.GetWebhookServer(), p.manager.GetScheme(), pods, p.manager.GetCache(), o.clusterName)
}
