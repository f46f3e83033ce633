package main

import (
	"context"
	"reflect"
	"slices"
	"sync"
	"sync/atomic"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/weir-dev/weir/internal/controlplane/hub"
	"github.com/weir-dev/weir/internal/controlplane/region"
	"github.com/weir-dev/weir/internal/controlplane/resolve"
	"github.com/weir-dev/weir/pkg/federation/ledger"
	"github.com/weir-dev/weir/pkg/limiter"
	"github.com/weir-dev/weir/pkg/policy"
)

// budgets are those that the cluster takes part in, with the present versions of their
// credentials. For those that it keeps itself it remembers what it read last, by which
// other members are served. It is safe for concurrent use.
type budgets struct {
	cluster string
	ids     resolve.IDs // that budgets may have
	cache   client.Reader
	writer  client.Client // of the members' Secrets; asks the API server
	secrets *resolve.Secrets
	births  *hub.Births
	changed func() // is called when what the cluster keeps changes; may be nil

	known chan struct{} // closed once it was read what the cluster keeps
	first sync.Once
	kept  atomic.Pointer[map[string]ledger.Params] // by id
	have  atomic.Pointer[[]string]                 // members that have a Secret
}

var (
	_ region.Source = (*budgets)(nil)
	_ hub.Budgets   = (*budgets)(nil)
)

func newBudgets(cluster string, ids resolve.IDs, cache client.Reader, writer client.Client, secrets *resolve.Secrets, births *hub.Births) *budgets {
	b := &budgets{cluster: cluster, ids: ids, cache: cache, writer: writer, secrets: secrets, births: births, known: make(chan struct{})}
	b.kept.Store(&map[string]ledger.Params{})
	b.have.Store(&[]string{})
	return b
}

// FederatedBudgets implements region.Source.
func (b *budgets) FederatedBudgets(ctx context.Context) ([]policy.FederatedBudget, error) {
	all, err := resolve.ReadBudgets(ctx, b.cache, b.cluster, b.ids)
	if err != nil {
		return nil, err
	}
	counting, kept := all.Counting(), map[string]ledger.Params{}
	own, others := map[string]limiter.Micros{}, map[string]hub.Part{}
	for i := range counting {
		b.secrets.SetVersions(ctx, &counting[i])
		if of := &counting[i]; of.Hub == nil && of.Coordinator.Type == policy.ControllerStore {
			kept[of.ID], own[of.ID] = of.Params, of.Params.Window
		} else {
			others[of.ID] = hub.PartOf(of)
		}
	}
	if err := b.births.Attend(ctx, others, own); err != nil {
		return nil, err // nothing may be granted that is not known to have been
	}
	have := all.Credentialed()
	before, had := b.kept.Swap(&kept), b.have.Swap(&have)
	b.first.Do(func() { close(b.known) })
	if b.changed != nil && (!reflect.DeepEqual(*before, kept) || !slices.Equal(*had, have)) {
		b.changed()
	}
	return counting, nil
}

// Secret implements region.Source.
func (b *budgets) Secret(ctx context.Context, s policy.Store) (map[string][]byte, error) {
	data, _, err := b.secrets.Data(ctx, s)
	return data, err
}

// Keep implements region.Source.
func (b *budgets) Keep(ctx context.Context, of policy.Hub, r hub.Renewal) error {
	return hub.Keep(ctx, b.writer, of.Secret, r)
}

// Budget implements hub.Budgets.
func (b *budgets) Budget(id string) (ledger.Params, bool) {
	p, ok := (*b.kept.Load())[id]
	return p, ok
}

// Members implements hub.Budgets.
func (b *budgets) Members() []string {
	var names []string
	for _, p := range *b.kept.Load() {
		for _, m := range p.Members {
			names = append(names, m.Name)
		}
	}
	return names
}

// Credentialed implements hub.Budgets.
func (b *budgets) Credentialed() []string { return *b.have.Load() }
