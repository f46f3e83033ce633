package twotier

import (
	"slices"
	"time"

	"github.com/weir-dev/weir/pkg/limiter"
	"github.com/weir-dev/weir/pkg/store"
)

// DefaultTimeout bounds one store call when Config.Timeout is not set. It is
// long enough that a scheduling hiccup of a busy node is not mistaken for an
// outage, and short enough for a client to wait it out once.
const DefaultTimeout = 100 * time.Millisecond

// Mode says how often the store is asked.
type Mode uint8

// The modes.
const (
	Leased Mode = iota // once a batch; credits die with the windows that granted them
	Strict             // once a request
)

// Action is what a limiter does when the credits in hand are spent and the store
// cannot be reached.
type Action uint8

// The failure actions.
const (
	LocalShare Action = iota // from the next window on, admit limit / holders alone
	Allow                    // admit
	Deny                     // refuse
)

// Config is what a Limiter enforces.
type Config struct {
	// Scope names the limit. It never changes: Reconfigure ignores it.
	Scope store.Scope
	// Params are the rates, valid by their Validate, and their generation.
	Params limiter.Params
	Mode   Mode
	// Batch is the number of units a lease asks for, at least 1. A call asks for
	// more when requests that cost more are waiting for it. Leased only.
	Batch int64
	// MaxKeys bounds the values that have a counter of their own, at least 1. The
	// others share one counter, in this process and at the store. Values that have
	// one already keep it when the bound is lowered, until they are idle.
	MaxKeys int
	// Timeout bounds one store call; 0 means DefaultTimeout.
	Timeout       time.Duration
	OnUnavailable Action
	// Holders is the number of processes that enforce the limit, 0 while that is
	// not known. A lease asks for no more than the limit / Holders ahead of demand,
	// and LocalShare admits that much alone.
	Holders int64
}

// normalize replaces what is out of bounds by the nearest bound and copies what
// the caller could still change.
func (c Config) normalize() *Config {
	c.Params.Rates = slices.Clone(c.Params.Rates)
	c.Batch = min(max(c.Batch, 1), limiter.MaxLimit)
	c.MaxKeys = max(c.MaxKeys, 1)
	if c.Timeout <= 0 {
		c.Timeout = DefaultTimeout
	}
	return &c
}

// tightest returns the rate with the smallest limit: the largest cost that can
// ever be admitted.
func (c *Config) tightest() limiter.Rate {
	return slices.MinFunc(c.Params.Rates, func(a, b limiter.Rate) int {
		return int(min(max(a.Limit-b.Limit, -1), 1))
	})
}
