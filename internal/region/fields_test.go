package region

import (
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
