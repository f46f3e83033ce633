package policy

import (
	"regexp"

	"github.com/weir-dev/weir/pkg/federation/ledger"
	"github.com/weir-dev/weir/pkg/limiter"
)

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
	Key        *Key          // each value of it has the whole limit; nil: the budget is one counter
	Overrides  []Override    // of single values of the key; Params has them by hash

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

// MaxBudgetID is the most bytes of a budget's id.
const MaxBudgetID = 128

var budgetID = regexp.MustCompile(`^[a-z0-9]([-a-z0-9.]*[a-z0-9])?(/[a-z0-9]([-a-z0-9.]*[a-z0-9])?)*$`)

// IsBudgetID reports whether a budget can have the id.
func IsBudgetID(id string) bool { return len(id) <= MaxBudgetID && budgetID.MatchString(id) }

// maxClusters is how many may share a budget.
const maxClusters = ledger.MaxMembers

// validateBudget refuses what a budget cannot be: it is one counter, or one for each value, of
// plain windows that only the controller leases from. Nothing is asked of a store that is being
// drained.
func (l *Limit) validateBudget(errs *problems, path string, p *Policy) {
	if !IsBudgetID(l.Budget.ID) {
		errs.add(path+".budget.id", "is %q: use 1 to %d lower-case letters, digits, dashes and dots, in parts that slashes separate", l.Budget.ID, MaxBudgetID)
	}
	errs.name(path+".budget.name", l.Budget.Name, objectName)
	if len(l.Rates) != 1 || l.Rates[0] != (limiter.Rate{Limit: l.Rates[0].Limit, Window: l.Rates[0].Window}) {
		errs.add(path+".rates", "are not those of a budget: it has one rate, of a limit and a window")
	}
	l.validateBudgetOverrides(errs, path)
	if l.Algorithm != FixedWindow && l.Algorithm != "" {
		errs.add(path+".algorithm", "is %s, but a budget has fixed windows", l.Algorithm)
	}
	if l.Retention.Durable {
		errs.add(path+".retention.durable", "is set, but a budget is kept by its coordinator")
	}
	if l.Any {
		errs.add(path+".any", "is set, but a budget has one rate")
	}
	if l.Key != nil && l.Clusters == 0 {
		errs.add(path+".key", "splits the limit, but the budget has no key: it is one counter")
	}
	if l.Key == nil && l.Clusters > 0 {
		errs.add(path+".clusters", "is %d, but the limit has no key: they share one counter", l.Clusters)
	}
	if l.Key != nil && l.Fairness != nil {
		errs.add(path+".fairness", "splits the limit of a value, but a budget with a key is not split over tenants")
	}
	if l.Clusters < 0 || l.Clusters > maxClusters {
		errs.add(path+".clusters", "is %d, must be 0 to %d", l.Clusters, maxClusters)
	}
	if p.Store.Type != ControllerStore && !p.Draining {
		errs.add(path+".budget", "is leased by the controller, not by store %s", p.Store.Type)
	}
	if p.Consistency.Expiry == CarryOver {
		errs.add(path+".budget", "is granted by the window, but credits carry over")
	}
}

// validateBudgetOverrides refuses values with other windows than the budget has.
func (l *Limit) validateBudgetOverrides(errs *problems, path string) {
	for i, o := range l.Overrides {
		if len(l.Rates) != 1 || len(o.Rates) != 1 || o.Rates[0] != (limiter.Rate{Limit: o.Rates[0].Limit, Window: l.Rates[0].Window}) {
			errs.add(path+entry(".overrides", i)+".rates", "are not those of a budget: a value has another limit in the same windows")
		}
	}
}
