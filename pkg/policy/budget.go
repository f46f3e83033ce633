package policy

import "github.com/weir-dev/weir/pkg/federation/ledger"

// A BudgetRef says which FederatedBudget a limit draws from. Its rate is the limit's
// only one, and the controller of this cluster hands on what the cluster was granted.
type BudgetRef struct {
	ID   string `json:"id"`   // the same in all clusters
	Name string `json:"name"` // of the object, in the policy's namespace
}

// A FederatedBudget is one FederatedBudget as this cluster takes part in it, resolved.
// Sidecars never see it: they know its BudgetRef.
type FederatedBudget struct {
	ID         string
	Namespace  string
	Name       string
	Generation int64
	Member     string        // this cluster's name among the members
	Params     ledger.Params // on a member of a hub what the object says; the hub's count

	// Hub is where the budget is kept by another cluster; nil when this cluster keeps
	// it itself or, with a Coordinator of another type, reaches it directly.
	Hub *Hub
	// Coordinator keeps the budget when there is no Hub: ControllerStore is the leading
	// controller of this cluster, with blocks set aside in the API server.
	Coordinator Store
	// Escrow keeps what the cluster was granted: ControllerStore, in the memory of the
	// leading controller, or RedisStore.
	Escrow Store

	OnCoordinatorOutage BudgetOutage
	Batch               Batch
}

// A Hub is the cluster that keeps a budget.
type Hub struct {
	Endpoint string // host:port
	// Secret holds ca.crt, tls.crt, tls.key and token, as "namespace/name".
	Secret, SecretVersion string
}

// BudgetOutage is what a region does while the coordinator does not answer.
type BudgetOutage string

// The actions.
const (
	// BudgetFailClosed hands on what is left in the escrow, then refuses.
	BudgetFailClosed BudgetOutage = "FailClosed"
	// BudgetRegionalOnly does the same, but leases ahead what it expects to need in the rest
	// of the window, so that an outage within a window is hardly felt.
	BudgetRegionalOnly BudgetOutage = "RegionalOnly"
	// BudgetNominal goes on with the member's slice of every window.
	BudgetNominal BudgetOutage = "Nominal"
)

// Batch says how much a region leases at once.
type Batch struct {
	Type SizeType // Adaptive or Fixed
	Size int64    // what Adaptive begins with, at least 1
}
