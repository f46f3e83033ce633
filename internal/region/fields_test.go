package region

import (
	"errors"
	"testing"

	"github.com/weir-dev/weir/internal/fieldtest"
	"github.com/weir-dev/weir/pkg/federation/ledger"
	"github.com/weir-dev/weir/pkg/policy"
)

func TestEveryFieldOfABudgetReachesTheEngine(t *testing.T) {
	fixed := &policy.FederatedBudget{
		ID: "acme/world", Member: "eu-west", OnCoordinatorOutage: policy.BudgetRegionalOnly,
		Params: ledger.Params{
			Limit: 1, Window: 2, Strategy: 3, Slices: true, Block: 4,
			Members: []ledger.Member{{Name: "eu-west", Weight: 5, Nominal: 6, Kept: 7, Borrowing: 8}},
		},
		Batch: policy.Batch{Type: policy.Fixed, Size: 9},
	}
	adaptive := *fixed
	adaptive.Batch.Type, adaptive.OnCoordinatorOutage = policy.Adaptive, policy.BudgetNominal
	fieldtest.Matter(t, []*policy.FederatedBudget{fixed, &adaptive}, func(b *policy.FederatedBudget) (any, error) {
		return engineConfig(b), nil
	},
		"FederatedBudget.Namespace", "FederatedBudget.Name", "FederatedBudget.Generation", // which the part reads
		"FederatedBudget.Hub", "FederatedBudget.Coordinator", "FederatedBudget.Escrow", // which places read
		"Config.Patience", "Config.Timeout", "Config.Probe", "Config.Clock") // which are the same for all
}

func TestPlaces(t *testing.T) {
	redis := policy.Store{Type: policy.RedisStore, Address: "redis:1", Secret: "shop/redis", SecretVersion: "7"}
	postgres := policy.Store{Type: policy.PostgresStore, Address: "pg:1"}
	here := policy.Store{Type: policy.ControllerStore}
	hub := &policy.Hub{Endpoint: "hub:1", Secret: "shop/hub", SecretVersion: "8"}
	for name, tc := range map[string]struct {
		budget         policy.FederatedBudget
		ledger, escrow string
		credentials    policy.Store // of the ledger
	}{
		"this controller": {policy.FederatedBudget{Coordinator: here, Escrow: here}, "this controller", "", policy.Store{}},
		"a hub": {
			policy.FederatedBudget{Hub: hub, Coordinator: here, Escrow: redis},
			"the hub at hub:1", "redis at redis:1",
			policy.Store{Secret: "shop/hub", SecretVersion: "8"},
		},
		"a Redis":    {policy.FederatedBudget{Coordinator: redis, Escrow: here}, "redis at redis:1", "", redis},
		"a Postgres": {policy.FederatedBudget{Coordinator: postgres, Escrow: here}, "postgres at pg:1", "", postgres},
	} {
		t.Run(name, func(t *testing.T) {
			p := newPart(tc.budget)
			if p.ledger.to != tc.ledger || !errors.Is(p.ledger.cause, errNotYet) {
				t.Errorf("the budget is kept by %s (%v), want %s", p.ledger.to, p.ledger.cause, tc.ledger)
			}
			if (p.escrow != nil) != (tc.escrow != "") || p.escrow != nil && (p.escrow.to != tc.escrow || !errors.Is(p.escrow.cause, errNotYet)) {
				t.Errorf("what was granted is kept by %+v, want %s", p.escrow, tc.escrow)
			}
			if got := ledgerOf(&tc.budget).credentials(); got != tc.credentials {
				t.Errorf("credentials %+v, want %+v", got, tc.credentials)
			}
		})
	}
}
