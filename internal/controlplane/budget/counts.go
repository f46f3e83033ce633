package budget

import (
	"time"

	"github.com/weir-dev/weir/internal/controlplane/audit"
	"github.com/weir-dev/weir/pkg/federation/ledger"
	"github.com/weir-dev/weir/pkg/limiter"
)

// Counts are what the sidecars of this cluster counted by themselves of the budget of an
// id, in a window that ended between the instants before and over. They are safe for concurrent
// use.
type Counts struct {
	// Usage returns the sums.
	Usage func(id string, w limiter.OpenWindow, before, over time.Time) ledger.Usage
	// Values returns what was counted of the values of a budget with a key. It has sidecars be
	// asked for the exact counts of those that are wanted, which a later call returns.
	Values func(id string, w limiter.OpenWindow, before, over time.Time, wanted []string) audit.ValueUsage
}
