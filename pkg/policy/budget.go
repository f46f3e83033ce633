package policy

import (
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/weir-dev/weir/pkg/federation/ledger"
	"github.com/weir-dev/weir/pkg/limiter"
)

// A BudgetRef says which FederatedBudget a limit draws from. Its rates are the limit's: the first,
// and the additional ones from the shortest window to the longest. The controller of this cluster
// hands on what the cluster was granted.
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
	// Additional are those of each further rate of the object, from the shortest window to the
	// longest. They differ from Params in what follows from the limit and the window.
	Additional []ledger.Params
	// Of is the id of the object where this is one of its further rates; "" for its first.
	Of        string
	Key       *Key       // each value of it has the whole limit; nil: the budget is one counter
	Overrides []Override // of single values of the key; Params has them by hash

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

// Rates returns the object as one budget for each of its rates, the first rate's before the others.
// All are kept in the same place, and none knows of another.
func (b *FederatedBudget) Rates() []FederatedBudget {
	all := []FederatedBudget{*b}
	for _, p := range b.Additional {
		further := *b
		further.ID, further.Of, further.Params, further.Additional = RateID(b.ID, p.Window), b.ID, p, nil
		all = append(all, further)
	}
	return all
}

// Windows returns the lengths of the windows of the object's rates, in the order of Rates.
func (b *FederatedBudget) Windows() []limiter.Micros {
	out := []limiter.Micros{b.Params.Window}
	for _, p := range b.Additional {
		out = append(out, p.Window)
	}
	return out
}

// rateMark is in the id of no object: IsBudgetID.
const rateMark = "#"

// RateID returns the id by which the coordinator knows a further rate of the object with an id: one
// for each length of windows, whatever other rates there are and in which order.
func RateID(id string, window limiter.Micros) string {
	return id + rateMark + strconv.FormatInt(int64(window), 10)
}

// ObjectID returns the id of the object that a rate with the id is of.
func ObjectID(id string) string {
	object, _, _ := strings.Cut(id, rateMark)
	return object
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
	if len(l.Rates) < 1 || len(l.Rates) > limiter.MaxRates || slices.ContainsFunc(l.Rates, func(r limiter.Rate) bool { return r != plainRate(r) }) {
		errs.add(path+".rates", "are not those of a budget: it has 1 to %d, each of a limit and a window", limiter.MaxRates)
	}
	if len(l.Rates) > 1 && l.Fairness != nil {
		errs.add(path+".fairness", "splits one window, but the budget has %d rates", len(l.Rates))
	}
	l.validateBudgetOverrides(errs, path)
	if l.Algorithm != FixedWindow && l.Algorithm != "" {
		errs.add(path+".algorithm", "is %s, but a budget has fixed windows", l.Algorithm)
	}
	if l.Retention.Durable {
		errs.add(path+".retention.durable", "is set, but a budget is kept by its coordinator")
	}
	if l.Any {
		errs.add(path+".any", "is set, but all rates of a budget have to admit")
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

// validateBudgetOverrides refuses values with other windows than the budget has, or with another
// limit of its further rates.
func (l *Limit) validateBudgetOverrides(errs *problems, path string) {
	for i, o := range l.Overrides {
		if len(l.Rates) == 0 || len(o.Rates) != len(l.Rates) || o.Rates[0] != plainRate(limiter.Rate{Limit: o.Rates[0].Limit, Window: l.Rates[0].Window}) ||
			!slices.Equal(o.Rates[1:], l.Rates[1:]) {
			errs.add(path+entry(".overrides", i)+".rates", "are not those of a budget: a value has another limit of the first rate, in the same windows")
		}
	}
}

// plainRate returns the limit and the window of a rate.
func plainRate(r limiter.Rate) limiter.Rate { return limiter.Rate{Limit: r.Limit, Window: r.Window} }
