package keyed

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/weir-dev/weir/pkg/federation/keys"
	"github.com/weir-dev/weir/pkg/federation/ledger"
	"github.com/weir-dev/weir/pkg/limiter"
	"github.com/weir-dev/weir/pkg/monotonic"
)

// Coordinator is what the engine needs of the keeper of a budget.
type Coordinator interface {
	// ApplyKeys grants units of keys of the budget of that id by the coordinator's own clock,
	// and blocks until it answered or ctx is done. An error means that nothing was granted as
	// far as the caller can know; it is a *store.UnavailableError when the coordinator could
	// not be reached or did not answer in time. A hub knows the parameters itself and takes of
	// p only the window.
	ApplyKeys(ctx context.Context, id string, p ledger.Params, r keys.Request) (keys.Reply, error)
}

// Slices are what a region may hand on of each window without asking.
type Slices interface {
	// Slice returns the number of the coordinator's window that surely is open, how many units
	// of each value the region may hand on of it without asking, and the instant of
	// Config.Clock from which on it may not. The number is 0 when none are known. It does not
	// block; see federation.Region.
	Slice() (index, units, until int64)
}

// The defaults of Config.
const (
	DefaultTimeout = time.Second
	DefaultProbe   = 5 * time.Second
	DefaultKeys    = int(ledger.MaxKeys)
)

// Config says how a region uses its part of a budget.
type Config struct {
	// ID and Member name the budget and the region. They never change: Reconfigure
	// ignores them.
	ID, Member string
	// Params are what the budget is divided by, as far as the region knows: Limit is that of
	// each value without an override.
	Params ledger.Params

	// Timeout bounds one call of the coordinator; 0 is DefaultTimeout.
	Timeout time.Duration
	// Patience bounds how long Apply waits for units before it refuses; 0 is Timeout.
	// Where holders wait for a shorter time it has to be shorter than that, or they take
	// a slow coordinator for a store that is away.
	Patience time.Duration
	// Probe is the longest time after a failure before the coordinator is tried again, if
	// anybody asks; 0 is DefaultProbe.
	Probe time.Duration
	// Keys is how many values are remembered; 0 is DefaultKeys. Others
	// have no slice, and their units may be forfeited.
	Keys int

	// Clock is what deadlines are counted on; nil is monotonic.Process. Reconfigure
	// ignores it.
	Clock *monotonic.Clock
}

// Validate reports what is wrong with the configuration.
func (c Config) Validate() error {
	var errs []error
	check := func(ok bool, format string, args ...any) {
		if !ok {
			errs = append(errs, fmt.Errorf(format, args...))
		}
	}
	check(c.ID != "", "id is empty; name the budget as in all clusters")
	check(slices.Contains(c.Params.Names(), c.Member),
		"member is %q, which is not a member of the budget; start the controller with the name of a member as its cluster's", c.Member)
	check(min(c.Timeout, c.Patience, c.Probe) >= 0, "timeout is %v, patience %v and probe %v: none may be below 0", c.Timeout, c.Patience, c.Probe)
	check(c.Keys >= 0, "keys is %d, below 0", c.Keys)
	if err := c.Params.Validate(); err != nil {
		errs = append(errs, fmt.Errorf("params: %w", err))
	}
	return errors.Join(errs...)
}

// normalize replaces what is not set.
func (c Config) normalize() Config {
	c.Params.Members, c.Params.Overrides = slices.Clone(c.Params.Members), slices.Clone(c.Params.Overrides)
	if c.Timeout == 0 {
		c.Timeout = DefaultTimeout
	}
	if c.Patience == 0 {
		c.Patience = c.Timeout
	}
	if c.Probe == 0 {
		c.Probe = DefaultProbe
	}
	if c.Keys == 0 {
		c.Keys = DefaultKeys
	}
	if c.Clock == nil {
		c.Clock = monotonic.Process
	}
	return c
}

// rate is that of each value without an override.
func (c *Config) rate() limiter.Rate {
	return limiter.Rate{Limit: c.Params.Limit, Window: c.Params.Window}
}

// rateOf is that of the value with the hash.
func (c *Config) rateOf(hash string) limiter.Rate {
	return limiter.Rate{Limit: c.Params.LimitOf(hash), Window: c.Params.Window}
}
