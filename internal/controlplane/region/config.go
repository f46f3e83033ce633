package region

import (
	"context"
	"time"

	"github.com/go-logr/logr"

	"github.com/weir-dev/weir/internal/backend"
	"github.com/weir-dev/weir/internal/controlplane/audit/budgetaudit"
	"github.com/weir-dev/weir/internal/controlplane/hub"
	"github.com/weir-dev/weir/pkg/federation"
	"github.com/weir-dev/weir/pkg/federation/keyed"
	"github.com/weir-dev/weir/pkg/federation/ledger"
	"github.com/weir-dev/weir/pkg/limiter"
	"github.com/weir-dev/weir/pkg/policy"
	"github.com/weir-dev/weir/pkg/store"
)

// A Source returns which budgets this cluster takes part in.
type Source interface {
	// FederatedBudgets returns how the cluster takes part in each of its budgets, each id
	// once. It reads a cache. An error means that this is not known now: everything
	// stays as it is.
	FederatedBudgets(ctx context.Context) ([]policy.FederatedBudget, error)

	// Secret returns the values of the credentials that the store names, in the version
	// it names or a later one. It may ask the API server.
	Secret(ctx context.Context, s policy.Store) (map[string][]byte, error)

	// Keep writes a renewed certificate into the Secret that the hub names. The error says
	// why it cannot, and the cure.
	Keep(ctx context.Context, of policy.Hub, r hub.Renewal) error
}

// An Engine uses this member's part of one budget; see federation.Region.
type Engine interface {
	Apply(ctx context.Context, key store.Key, p limiter.Params, c limiter.Command) (limiter.Result, error)
	Report(ctx context.Context, usage []ledger.Usage) error
	Reconfigure(cfg federation.Config)
	Slice() (index, units, until int64)
	Stats() federation.Stats
	Close(ctx context.Context)
}

// A Coordinator keeps budgets, and such with a key.
type Coordinator interface {
	federation.Coordinator
	keyed.Coordinator
}

// A LocalCoordinator is this cluster's own coordinator.
type LocalCoordinator interface {
	Coordinator
	// Seal makes every later call fail and gives up what was set aside, if that is
	// possible before ctx is done.
	Seal(ctx context.Context)
}

// A Hub is another cluster's coordinator. Close may be called while calls are under
// way.
type Hub interface {
	Coordinator
	Auditor
	// Renewable returns from when on this cluster's certificate should be renewed, and
	// when it ends.
	Renewable() (from, until time.Time)
	Renew(ctx context.Context) (hub.Renewal, error)
	Close()
}

// An Auditor measures the values of budgets with a key over all members. Row is what this
// member counted in a window that is over; nil only asks. The error is that of Apply.
type Auditor interface {
	ReportKeys(ctx context.Context, id, member string, p ledger.Params, row *budgetaudit.ValueRow) (budgetaudit.Answer, error)
}

// Config is what a Set works with.
type Config struct {
	Source Source
	// Cluster is this cluster's name: the prefix of what it keeps in a shared Redis.
	Cluster string
	// Local keeps the budgets that this cluster is the hub of; the Set seals it.
	Local LocalCoordinator
	// Auditor measures those of them with a key. Nil: nothing is known of their values.
	Auditor Auditor
	// Births are of the budgets that stores keep. Nil: each waits for its first whole
	// window.
	Births Births
	Log    logr.Logger
	// Certificates receive when those of this cluster end, while the Set runs. May be nil.
	Certificates *Certificates

	// Control is asked about every address of a hub or store that is dialled. Nil allows all.
	// Plain is as backend.Opener has it.
	Control, Plain store.Control

	// Dial opens the way to a hub, Open a store, and New an engine. Nil: the real ones.
	Dial func(of policy.Hub, secret map[string][]byte) (Hub, error)
	Open func(of policy.Store, secret map[string][]byte) (Server, error)
	New  func(cfg federation.Config, c federation.Coordinator, e federation.Escrow) Engine
}

// normalize puts the real parts in the place of those that are not set.
func (c Config) normalize() Config {
	if c.Dial == nil {
		hubs := &hub.Connections{Control: c.Control}
		c.Dial = func(of policy.Hub, secret map[string][]byte) (Hub, error) { return hubs.Open(of.Endpoint, secret) }
	}
	if c.Open == nil {
		by := backend.Opener{Control: c.Control, Plain: c.Plain}
		c.Open = func(of policy.Store, secret map[string][]byte) (Server, error) { return openServer(by, of, secret) }
	}
	if c.New == nil {
		c.New = func(cfg federation.Config, k federation.Coordinator, e federation.Escrow) Engine {
			return federation.New(cfg, k, e)
		}
	}
	return c
}
