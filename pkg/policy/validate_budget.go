package policy

import (
	"regexp"

	"github.com/weir-dev/weir/pkg/limiter"
)

// MaxBudgetID is the most bytes of a budget's id.
const MaxBudgetID = 128

var budgetID = regexp.MustCompile(`^[a-z0-9]([-a-z0-9.]*[a-z0-9])?(/[a-z0-9]([-a-z0-9.]*[a-z0-9])?)*$`)

// validateBudget refuses what a budget cannot be: it is one counter of plain windows
// that only the controller leases from. Nothing is asked of a store that is being
// drained.
func (l *Limit) validateBudget(errs *problems, path string, p *Policy) {
	if len(l.Budget.ID) > MaxBudgetID || !budgetID.MatchString(l.Budget.ID) {
		errs.add(path+".budget.id", "is %q: use 1 to %d lower-case letters, digits, dashes and dots, in parts that slashes separate", l.Budget.ID, MaxBudgetID)
	}
	errs.name(path+".budget.name", l.Budget.Name, objectName)
	if len(l.Rates) != 1 || l.Rates[0] != (limiter.Rate{Limit: l.Rates[0].Limit, Window: l.Rates[0].Window}) {
		errs.add(path+".rates", "are not those of a budget: it has one rate, of a limit and a window")
	}
	if l.Algorithm != FixedWindow && l.Algorithm != "" {
		errs.add(path+".algorithm", "is %s, but a budget has fixed windows", l.Algorithm)
	}
	if l.Retention.Durable {
		errs.add(path+".retention.durable", "is set, but a budget is kept by its coordinator")
	}
	if l.Any {
		errs.add(path+".any", "is set, but a budget has one rate")
	}
	if l.Key != nil {
		errs.add(path+".key", "splits the limit, but a budget is one counter")
	}
	if p.Store.Type != ControllerStore && !p.Draining {
		errs.add(path+".budget", "is leased by the controller, not by store %s", p.Store.Type)
	}
	if p.Consistency.Expiry == CarryOver {
		errs.add(path+".budget", "is granted by the window, but credits carry over")
	}
}
