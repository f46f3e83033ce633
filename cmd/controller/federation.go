package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	"github.com/weir-dev/weir/internal/controlplane/budget"
	"github.com/weir-dev/weir/internal/controlplane/coordinator"
	"github.com/weir-dev/weir/internal/controlplane/hub"
	"github.com/weir-dev/weir/internal/controlplane/region"
	budgetcoordinator "github.com/weir-dev/weir/pkg/federation/coordinator/kubernetes"
	"github.com/weir-dev/weir/pkg/limiter"
	"github.com/weir-dev/weir/pkg/store"
)

// hubService is the Service of the leader's port for members of budgets.
const hubService = "weir-hub"

// A federation is what the leader runs for budgets that clusters share.
type federation struct {
	budgets     *budgets
	journal     *hub.Journal
	births      *hub.Births
	coordinator *budgetcoordinator.Coordinator
	audits      *hub.Audits
	control     store.Control // of addresses of stores and hubs
	plain       store.Control // of those that are reached without encryption
	// certificates are those by which this cluster is a member elsewhere.
	certificates region.Certificates
}

// newFederation returns one that keeps records through a client of its own. Others of
// this process must not use up the rate of one that is written every half a block.
func (p *platform) newFederation() (*federation, error) {
	clients, err := kubernetes.NewForConfig(rest.CopyConfig(p.config))
	if err != nil {
		return nil, fmt.Errorf("API client of the hub: %w", err)
	}
	maps := clients.CoreV1().ConfigMaps(p.options.namespace)
	f := &federation{journal: hub.NewJournal(maps), births: hub.NewBirths(maps), control: p.addresses.control, plain: p.addresses.plain}
	f.budgets = newBudgets(p.options.clusterName, p.options.budgetIDs, p.manager.GetCache(), p.live, p.secrets, f.births)
	f.coordinator = budgetcoordinator.New(budgetcoordinator.Options{
		Journal: f.journal,
		Births:  f.births,
		Clock:   func() limiter.Instant { return limiter.Instant(time.Now().UnixMicro()) },
	})
	f.audits = hub.NewAudits()
	hub.Expose(metrics.Registry, f.coordinator.Stats)
	return f, metrics.Registry.Register(&f.certificates)
}

// parts returns what hands on this cluster's parts of budgets for one term.
func (f *federation) parts(counts budget.Counts, changed func(types.NamespacedName), first bool) coordinator.Budgets {
	f.births.Begin(first)
	f.audits.Reset()
	return region.New(f.regionConfig(), counts, changed)
}

func (f *federation) regionConfig() region.Config {
	return region.Config{
		Source: f.budgets, Cluster: f.budgets.cluster, Local: f.coordinator, Auditor: f.audits, Births: f.births, Log: log.Log.WithName("federation"),
		Certificates: &f.certificates, Control: f.control, Plain: f.plain,
	}
}

// addHub has the leader serve other clusters, unless that is turned off.
func (p *platform) addHub(f *federation) error {
	o := p.options
	add := func(r manager.Runnable) error { return p.manager.Add(&onceKnown{Runnable: r, known: f.budgets.known}) }
	sweeper := hub.NewSweeper(f.journal, f.budgets, f.coordinator)
	f.budgets.changed = sweeper.Refresh
	if err := add(sweeper); err != nil || !o.servesMembers() {
		return err
	}
	credentials := hub.NewCredentials(p.credentialsConfig(f))
	f.budgets.changed = func() {
		sweeper.Refresh()
		credentials.Refresh()
	}
	if err := errors.Join(add(credentials), metrics.Registry.Register(credentials)); err != nil {
		return err
	}
	return add(hub.NewServer(p.hubConfig(f, credentials)))
}

func (p *platform) credentialsConfig(f *federation) hub.CredentialsConfig {
	o := p.options
	return hub.CredentialsConfig{
		Client: p.live, Namespace: o.namespace, Self: o.clusterName, Budgets: f.budgets,
		Names: append([]string{o.service(hubService)}, o.federationSANs...),
	}
}

func (p *platform) hubConfig(f *federation, credentials *hub.Credentials) hub.ServerConfig {
	config := hub.ServerConfig{
		Address: p.options.federationBindAddress, Coordinator: f.coordinator, Audits: f.audits, Budgets: f.budgets, Credentials: credentials,
		Registerer: metrics.Registry,
	}
	if p.lock != nil {
		config.Leadership = p.lock
	}
	return config
}

// onceKnown runs something of the leader once it is known which budgets it keeps:
// members would hear that theirs are not.
type onceKnown struct {
	manager.Runnable
	known <-chan struct{}
}

// NeedLeaderElection implements manager.LeaderElectionRunnable.
func (*onceKnown) NeedLeaderElection() bool { return true }

// Start implements manager.Runnable.
func (o *onceKnown) Start(ctx context.Context) error {
	select {
	case <-ctx.Done():
		return nil
	case <-o.known:
		return o.Runnable.Start(ctx)
	}
}
