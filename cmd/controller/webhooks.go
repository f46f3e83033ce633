package main

import (
	"context"
	"crypto/x509"
	"fmt"
	"net/http"
	"os"

	corev1 "k8s.io/api/core/v1"
	apiversion "k8s.io/apimachinery/pkg/util/version"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/rest"
	ctrlwebhook "sigs.k8s.io/controller-runtime/pkg/webhook"

	"github.com/weir-dev/weir/internal/controlplane/inject"
	"github.com/weir-dev/weir/internal/controlplane/webhook"
	"github.com/weir-dev/weir/internal/version"
)

// addWebhooks has every replica serve the admission webhooks.
func (p *platform) addWebhooks(context.Context) error {
	minor, err := kubernetesMinor(p.config)
	if err != nil {
		return err
	}
	server := p.manager.GetWebhookServer()
	if p.options.webhookClientCA != "" {
		server = certified{server}
	}
	webhook.Register(server, p.manager.GetScheme(), p.injector(minor), p.manager.GetCache(), p.options.clusterName, p.options.budgetIDs)
	return p.manager.AddReadyzCheck("webhooks", server.StartedChecker())
}

// A certified server passes on only requests of callers that have a certificate of one of
// its authorities; others are refused before any of their body is read.
type certified struct{ ctrlwebhook.Server }

// Register implements webhook.Server.
func (s certified) Register(path string, hook http.Handler) {
	s.Server.Register(path, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.TLS == nil || len(r.TLS.VerifiedChains) == 0 {
			http.Error(w, "the caller has no certificate of an authority of --webhook-client-ca", http.StatusUnauthorized)
			return
		}
		hook.ServeHTTP(w, r)
	}))
}

// readAuthorities reads the certificates of a PEM file.
func readAuthorities(file string) (*x509.CertPool, error) {
	data, err := os.ReadFile(file) //nolint:gosec // the administrator names it by a flag
	if err != nil {
		return nil, fmt.Errorf("--webhook-client-ca: %w", err)
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(data) {
		return nil, fmt.Errorf("--webhook-client-ca: %s has no certificate in PEM", file)
	}
	return pool, nil
}

func (p *platform) injector(kubernetesMinor int) *webhook.PodInjector {
	o := p.options
	return &webhook.PodInjector{
		Namespaces:     p.manager.GetClient(),
		LiveNamespaces: p.live,
		Snapshots:      p.snapshots,
		Events:         p.manager.GetEventRecorder("weir-injector"),
		CABundle:       p.certificates.CABundle,
		Config: inject.Config{
			Version:          version.String(),
			Image:            o.sidecarImage,
			ImagePullPolicy:  corev1.PullPolicy(o.sidecarPull),
			ImagePullSecrets: o.sidecarSecrets,
			FleetAddress:     o.fleetAddress,
			FleetServerName:  o.service(fleetService),
			Capture:          inject.Capture(o.defaultCapture),
			Resources:        o.sidecar.requirements(),
			TraceCollector:   o.traceCollector,
			KubernetesMinor:  kubernetesMinor,
		},
	}
}

// kubernetesMinor asks the API server for its minor version, 34 for 1.34. It changes
// with an upgrade, after which nodes may still be older: until this process starts
// again, pods get what the older version knows.
func kubernetesMinor(config *rest.Config) (int, error) {
	client, err := discovery.NewDiscoveryClientForConfig(config)
	if err != nil {
		return 0, fmt.Errorf("discovery client: %w", err)
	}
	info, err := client.ServerVersion()
	if err != nil {
		return 0, fmt.Errorf("asking the API server for its version: %w", err)
	}
	v, err := apiversion.ParseGeneric(info.GitVersion)
	if err != nil {
		return 0, fmt.Errorf("the API server's version: %w", err)
	}
	return int(v.Minor()), nil
}
