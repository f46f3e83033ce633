package ledger

import "github.com/weir-dev/weir/pkg/limiter"

// Bounds of a budget. They keep every product and sum below 2^53.
const (
	MaxMembers = 64
	MaxWeight  = int64(1000)    // that a member is given
	MaxClaim   = int64(1) << 21 // of its tenants, which are a thousand at most
	MaxHolders = 64             // of one member in one window
	MaxName    = 253            // bytes of the name of a member or holder
	MaxKeys    = int64(100_000)
	// MaxOverrides bounds the values of a key that have limits of their own.
	MaxOverrides = 2048

	maxIndex = int64(limiter.MaxInstant) / int64(limiter.MinWindow)
	maxCount = int64(1) << 46 // that one member reports of a window
)

// Params are what a budget is divided by.
type Params struct {
	Limit  int64          // units per window, 1 to limiter.MaxLimit
	Window limiter.Micros // limiter.MinWindow to limiter.MaxWindow; aligned to multiples of its length
	// Others are the lengths of the windows of further rates that every request has to pass as well,
	// ascending. Each is a budget of its own. The ledger does not read them: a member that knows other
	// ones would draw from this budget without those.
	Others []limiter.Micros

	Members  []Member // 1 to MaxMembers, each once, ordered by name
	Strategy Strategy
	// Slices makes what a member keeps for itself (Member.Kept) a slice: units of
	// each window that it uses without asking, so also while it is cut off. What
	// changes is handed over: see Command.Slice.
	Slices bool
	// Block is how many units a reservation sets aside at once, 0 when the state itself
	// is durable and needs none.
	Block int64

	// Keys is how many values of a key package keys counts by themselves, up to MaxKeys: each
	// has the whole limit. 0 is a budget without a key. The ledger does not read it.
	Keys int64
	// Overrides are of single values of the key, ordered by hash, each once, up to MaxOverrides.
	// Of them the ledger reads the smallest limit, into which all slices have to fit.
	Overrides []Override
}

// A Member is one region.
type Member struct {
	Name   string
	Weight int64 // 1 to MaxWeight
	// Nominal is what the member is guaranteed of each window; the sum over all
	// members is at most Limit. Kept units of it are never lent to others, even when
	// the member does not ask: 0 to Nominal.
	Nominal, Kept int64
	// Borrowing is the most the member gets beyond Nominal; less than 0 sets none.
	Borrowing int64
}

// Strategy says how much of a window a member may get.
type Strategy uint8

// The strategies. In each a member's floor is its nominal share and its part, by
// weight, of what all nominal shares leave.
const (
	// FairShare is weighted max-min fairness: what a member wants up to its floor is
	// kept for it, and what others do not want of theirs is for any member that asks (water
	// filling; Bertsekas and Gallager, Data Networks, 6.5.2). A member itself says what it
	// wants, and does not forget it from one window to the next.
	FairShare Strategy = iota
	// FirstCome keeps only what members never lend.
	FirstCome
	// Static gives each member its floor and no more: the baseline without pooling.
	Static
)

// Names returns those of the members, in order.
func (p Params) Names() []string {
	names := make([]string, len(p.Members))
	for i, m := range p.Members {
		names[i] = m.Name
	}
	return names
}
