package main

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/discovery"
	authenticationclient "k8s.io/client-go/kubernetes/typed/authentication/v1"
	coreclient "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	"github.com/weir-dev/weir/controllers"
	"github.com/weir-dev/weir/internal/controlplane/coordinator"
	"github.com/weir-dev/weir/internal/controlplane/coordinator/podauth"
	"github.com/weir-dev/weir/internal/controlplane/coordinator/records"
	"github.com/weir-dev/weir/internal/controlplane/gateway"
	"github.com/weir-dev/weir/internal/controlplane/leadership"
	exported "github.com/weir-dev/weir/internal/controlplane/metrics"
	"github.com/weir-dev/weir/internal/controlplane/resolve"
	"github.com/weir-dev/weir/internal/controlplane/storeprobe"
	"github.com/weir-dev/weir/pkg/policy"
	"github.com/weir-dev/weir/pkg/store"
)

// addLeader adds what only the leader runs: the hub, the reconcilers, and the label by
// which others find it; and the coordinator, in which sidecars wait for a replica to lead.
func (p *platform) addLeader(ctx context.Context) error {
	shared, err := p.newFederation()
	if err != nil {
		return err
	}
	stores := storeprobe.New(p.addresses.stores().Open)
	config, err := p.coordinatorConfig(shared, stores)
	if err != nil {
		return err
	}
	fleet := coordinator.New(config)
	p.close = fleet.Close
	policies, pools, budgets := p.reconcilers(fleet, stores)
	leads := func() bool { _, ok := fleet.Now(); return ok }
	return errors.Join(
		metrics.Registry.Register(p.objects(leads)),
		p.manager.Add(fleet), p.addHub(shared),
		policies.SetupWithManager(p.manager), pools.SetupWithManager(p.manager), budgets.SetupWithManager(p.manager),
		p.addLabel(ctx),
	)
}

func (p *platform) objects(leads func() bool) *exported.Objects {
	return &exported.Objects{Cache: p.manager.GetCache(), Leads: leads, Namespaces: p.options.policyMetrics == "Namespace"}
}

func (p *platform) reconcilers(fleet *coordinator.Coordinator, stores *storeprobe.Prober) (
	*controllers.RateLimitPolicyReconciler, *controllers.ConcurrencyPoolReconciler, *controllers.FederatedBudgetReconciler,
) {
	events := p.manager.GetEventRecorder("weir-controller")
	policies := &controllers.RateLimitPolicyReconciler{
		Client:  p.manager.GetClient(),
		Pods:    p.manager.GetCache(),
		Cluster: p.options.clusterName,
		IDs:     p.options.budgetIDs,
		Fleet:   fleet,
		Stores:  stores,
		Secrets: p.secrets,
		Keys:    p.keys,
		Events:  events,
		Clock:   clock.RealClock{},
	}
	pools := &controllers.ConcurrencyPoolReconciler{
		Client:  p.manager.GetClient(),
		Pods:    p.manager.GetCache(),
		Fleet:   fleet,
		Secrets: p.secrets,
		Events:  events,
		Clock:   clock.RealClock{},
	}
	budgets := &controllers.FederatedBudgetReconciler{
		Client:  p.manager.GetClient(),
		Budgets: fleet,
		Cluster: p.options.clusterName,
		IDs:     p.options.budgetIDs,
		Events:  events,
		Clock:   clock.RealClock{},
	}
	return policies, pools, budgets
}

func (p *platform) coordinatorConfig(shared *federation, stores *storeprobe.Prober) (coordinator.Config, error) {
	reviews, published, terms, err := coordinatorClients(p.config, p.options.namespace)
	if err != nil {
		return coordinator.Config{}, fmt.Errorf("API clients of the coordinator: %w", err)
	}
	keys := podauth.NewKeys(func(ctx context.Context, path string) ([]byte, error) {
		return published.Get().AbsPath(path).DoRaw(ctx)
	}, log.Log.WithName("tokens"))
	resolver := resolve.ByPod{ByLabels: p.snapshots, Secrets: p.secrets, Keys: p.keys}
	config := coordinator.Config{
		Address:       p.options.fleetBindAddress,
		TLS:           &tls.Config{MinVersion: tls.VersionTLS13, GetCertificate: p.certificates.GetCertificate},
		Authenticator: podauth.NewReviewer(reviews, knownPods{p.manager.GetCache()}, keys),
		Resolver:      resolver,
		Terms:         records.NewTerms(terms),
		Births:        records.NewBirths(terms),
		Journals:      records.NewCounters(terms),
		Limits:        p.snapshots.Limits,
		Facts: func(ctx context.Context, of policy.Store) (store.Facts, error) {
			secret, _, err := p.secrets.Data(ctx, of)
			if err != nil {
				return store.Facts{}, err
			}
			return stores.Facts(ctx, of, secret)
		},
		Reached:    stores.Reached,
		Remembered: stores.Remembered,
		Gateways: func() coordinator.Gateways {
			return gateway.New(gateway.Config{
				Open: p.addresses.stores().Open, Secret: resolver.Secret, Reached: stores.Reached,
				Log: log.Log.WithName("gateway"),
			})
		},
		Registerer: metrics.Registry,
		Budgets:    shared.parts,
		Pods:       knownPods{p.manager.GetCache()}.Sidecars,
		CatchUp:    func(ctx context.Context) error { return resolve.CatchUp(ctx, p.live, p.manager.GetCache()) },
		Replicas: func(ctx context.Context) ([]string, error) {
			return knownPods{p.manager.GetCache()}.Replicas(ctx, p.options)
		},
		Elected: p.manager.Elected(),
	}
	if p.lock != nil {
		config.Leadership = p.lock
	}
	return config, nil
}

// coordinatorClients returns the clients that review tokens, read what the API server
// publishes, and keep terms. Each has its own rate, so tokens to review, which strangers
// send, hold up no hand-over. Reviews have none: after a change of leader every sidecar
// may need one at once, podauth.Reviewer bounds how many are under way, and the API server
// has its priorities and fairness.
func coordinatorClients(config *rest.Config, namespace string) (authenticationclient.TokenReviewInterface, rest.Interface, coreclient.ConfigMapInterface, error) {
	own := rest.CopyConfig(config)
	own.RateLimiter = nil // which clients would share
	unlimited := rest.CopyConfig(own)
	unlimited.QPS = -1
	reviews, failed := authenticationclient.NewForConfig(unlimited)
	published, unpublished := discovery.NewDiscoveryClientForConfig(own)
	terms, err := coreclient.NewForConfig(own)
	if err = errors.Join(failed, unpublished, err); err != nil {
		return nil, nil, nil, err
	}
	return reviews.TokenReviews(), published.RESTClient(), terms.ConfigMaps(namespace), nil
}

// addLabel labels the leader's pod, when the process runs in one.
func (p *platform) addLabel(ctx context.Context) error {
	if p.options.podName == "" {
		return nil
	}
	labeler := &leadership.Labeler{
		Writer: p.live,
		Reader: p.live,
		Pod:    types.NamespacedName{Namespace: p.options.namespace, Name: p.options.podName},
	}
	// This container may be the second of a pod whose first led and crashed.
	if err := labeler.Clear(ctx); err != nil {
		return err
	}
	return p.manager.Add(labeler)
}
