package twotier

import (
	"errors"
	"fmt"
	"maps"
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
	// Leased asks once a batch; what credits are charged to ends their life.
	// LeakyBucket grants no credits, and is worked in mode Strict; algorithms that
	// grant none in advance because Params.Lifetime is 0 in mode CachedDeny.
	Leased Mode = iota
	// CachedDeny asks once a request that is admitted; a refusal is remembered until
	// it may be admitted, for costs that fare no better.
	CachedDeny
	// Strict asks once a request. Requests of one unit that wait for the same
	// counter are asked for together, each after it came.
	Strict
)

// SizeType says how the size of a lease is chosen.
type SizeType uint8

// The ways to size a lease.
const (
	Fixed      SizeType = iota // Size.Batch
	Adaptive                   // learned from the demand of past windows
	Predictive                 // a forecast, as far as it proves better than what was learned
)

// Size says how many units a lease prefetches. A call asks for more
// when requests that cost more are waiting for it.
type Size struct {
	Type SizeType
	// Batch is the size when Type is Fixed and what learning begins with otherwise; less
	// than 1 means 1.
	Batch int64
	// Min and Max bound what is learned, 1 <= Min <= Max; a Max of 0 is the limit.
	// The learned size never exceeds the limit.
	Min, Max int64
}

// Expiry says when credits die.
type Expiry uint8

// The expiries.
const (
	// Coupled credits die with the windows they were charged to, or Params.Lifetime
	// after the grant.
	Coupled Expiry = iota
	// CarryOver lets up to Most − 1 credits of a key outlive their window, and
	// LowWater more, where Most is the largest lease. So a window admits its limit
	// and that much for each process. FixedWindow only.
	CarryOver
)

// Action is what a limiter does when the held credits are spent and the store
// cannot be reached.
type Action uint8

// The failure actions.
const (
	LocalShare Action = iota // from the next window on, admit limit / holders locally
	Allow                    // admit
	Deny                     // refuse
)

// Config is what a Limiter enforces.
type Config struct {
	// Scope names the limit. It never changes: Reconfigure ignores it.
	Scope store.Scope
	// Params are the rates and their generation.
	Params limiter.Params
	// Overrides are the parameters of single values of the key. They differ from
	// Params in their rates only.
	Overrides map[string]limiter.Params

	Mode Mode
	// Size, Expiry, LowWater and ReturnIdleAfter apply to mode Leased.
	Size   Size
	Expiry Expiry
	// LowWater is the number of credits left at which the next lease is asked for
	// before they are needed; 0 asks when they are spent.
	LowWater int64
	// ReturnIdleAfter gives the credits of a key back that was not asked for during that
	// time, or up to half as long again, and later where there are very many keys. 0
	// chooses: an eighth of the shortest window, at least 100 ms, for keys that are asked
	// for often and for which the store has had little left of late. Where sizes are not
	// learned, or no window ends the life of credits, they are left to expire then.
	ReturnIdleAfter time.Duration

	// Draining says that another store is about to take over. Nothing is asked of
	// this one, held credits are given back and every request is refused, with
	// FromDrain, whatever OnUnavailable says.
	Draining bool
	// Pending says that the limit is not in force at the store yet: nothing is asked of
	// that, and OnUnavailable decides.
	Pending bool

	// MaxKeys bounds the pairs of value and tenant that have credits of their own; 0
	// means 1. Pairs that have some already keep them when the bound is lowered, until
	// they are idle.
	MaxKeys int
	// Memory admits what keys take of it; nil admits all. Values that it has none left for share
	// counters like those beyond MaxKeys. It never changes: Reconfigure ignores it.
	Memory Memory
	// SharedKeys is how many counters the others share, in this process and at the store; 0
	// means 1. A hash of the value chooses which, so it has to be the same in all
	// processes.
	SharedKeys int
	// Timeout bounds one store call; 0 means DefaultTimeout.
	Timeout       time.Duration
	OnUnavailable Action
	// Holders is the number of processes that enforce the limit, 0 while that is
	// not known. LocalShare admits the limit / Holders locally, and a lease asks for no
	// more ahead while the store does not guide it. While it is not known, a lease begins
	// with a tenth of the limit and grows with what was granted.
	Holders int64
}

// Validate reports the fields whose values a limiter cannot work by. The errors begin with the
// field.
func (c *Config) Validate() error {
	var errs []error
	if err := c.Params.Validate(); err != nil {
		errs = append(errs, fmt.Errorf("%s: %w", "Params", err))
	}
	for value, p := range c.Overrides {
		if err := p.Validate(); err != nil {
			errs = append(errs, fmt.Errorf("%s[%q]: %w", "Overrides", value, err))
		}
	}
	refuse := func(field string, value any, want string, isWrong bool) {
		if isWrong {
			errs = append(errs, fmt.Errorf("%s is %v, want %s", field, value, want))
		}
	}
	refuse("Mode", c.Mode, "Leased, CachedDeny or Strict", c.Mode > Strict)
	refuse("Size.Type", c.Size.Type, "Fixed, Adaptive or Predictive", c.Size.Type > Predictive)
	refuse("Size.Max", c.Size.Max, "0 or at least Size.Min", c.Size.Max != 0 && c.Size.Max < c.Size.Min)
	refuse("Expiry", c.Expiry, "Coupled or CarryOver", c.Expiry > CarryOver)
	refuse("OnUnavailable", c.OnUnavailable, "LocalShare, Allow or Deny", c.OnUnavailable > Deny)
	refuse("LowWater", c.LowWater, "at least 0", c.LowWater < 0)
	refuse("ReturnIdleAfter", c.ReturnIdleAfter, "at least 0", c.ReturnIdleAfter < 0)
	refuse("MaxKeys", c.MaxKeys, "at least 0", c.MaxKeys < 0)
	refuse("SharedKeys", c.SharedKeys, "at least 0", c.SharedKeys < 0)
	refuse("Timeout", c.Timeout, "at least 0", c.Timeout < 0)
	refuse("Holders", c.Holders, "at least 0", c.Holders < 0)
	return errors.Join(errs...)
}

// normalize replaces what is out of bounds by the nearest bound and copies what
// the caller could still change.
func (c Config) normalize() Config {
	c.Params.Rates = slices.Clone(c.Params.Rates)
	c.Overrides = maps.Clone(c.Overrides)
	c.Size.Batch = min(max(c.Size.Batch, 1), limiter.MaxLimit)
	c.LowWater = max(c.LowWater, 0)
	c.ReturnIdleAfter = max(c.ReturnIdleAfter, 0)
	c.MaxKeys, c.SharedKeys = max(c.MaxKeys, 1), max(c.SharedKeys, 1)
	if c.Timeout <= 0 {
		c.Timeout = DefaultTimeout
	}
	c.Mode = c.workableMode()
	if !c.Params.Algorithm.WindowCoupled() {
		c.Expiry = Coupled
	}
	return c
}

// workableMode returns the mode that the algorithm can be worked in.
func (c *Config) workableMode() Mode {
	switch {
	case c.Params.Algorithm == limiter.LeakyBucket:
		return Strict // each request has a place in the queue of its own
	case c.Mode == Leased && !c.Params.Algorithm.WindowCoupled() && c.Params.Lifetime == 0:
		return CachedDeny // nothing is granted in advance
	default:
		return c.Mode
	}
}
