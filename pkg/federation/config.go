package federation

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/weir-dev/weir/pkg/federation/ledger"
	"github.com/weir-dev/weir/pkg/limiter"
	"github.com/weir-dev/weir/pkg/monotonic"
)

// The defaults of Config.
const (
	DefaultBatch   = 16
	DefaultTimeout = time.Second
	DefaultProbe   = 5 * time.Second
)

// Config says how a region uses its part of a budget.
type Config struct {
	// ID and Member name the budget and the region. They never change: Reconfigure
	// ignores them.
	ID, Member string
	// Params are what the budget is divided by, as far as the region knows.
	Params ledger.Params
	Outage Outage
	Batch  Batch

	// Timeout bounds one call of the coordinator or the escrow; 0 is DefaultTimeout.
	Timeout time.Duration
	// Patience bounds how long Apply waits for units before it refuses; 0 is Timeout.
	// Where holders wait for a shorter time it has to be shorter than that, or they take
	// a slow coordinator for a store that is away.
	Patience time.Duration
	// Probe is the longest time between two attempts to reach a coordinator that is
	// away; 0 is DefaultProbe.
	Probe time.Duration

	// Clock is what deadlines are counted on; nil is monotonic.Process. Reconfigure
	// ignores it.
	Clock *monotonic.Clock
}

// Outage says what a region does while the coordinator does not answer. In each case
// it first hands on what the escrow has.
type Outage uint8

// The actions.
const (
	// FailClosed then refuses.
	FailClosed Outage = iota
	// RegionalOnly then refuses, too, but has leased what it expects to need in the rest
	// of the window before.
	RegionalOnly
	// Nominal goes on with the member's slice of each window. It needs Params.Slices,
	// and that no other process of the member begins windows at the same time.
	Nominal
)

// Batch says how much a region leases at once, ahead of need. A command asks for more
// when requests are waiting.
type Batch struct {
	Fixed bool  // Size always; otherwise it is where learning from the demand begins
	Size  int64 // at least 1; 0 is DefaultBatch
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
	check(slices.ContainsFunc(c.Params.Members, func(m ledger.Member) bool { return m.Name == c.Member }),
		"member is %q, which is not a member of the budget; start the controller with the name of a member as its cluster's", c.Member)
	check(c.Outage <= Nominal, "outage is %d, which is unknown", c.Outage)
	check(c.Outage != Nominal || c.Params.Slices, "outage is Nominal, but the budget has no slices; set params.slices")
	check(c.Batch.Size >= 0 && c.Batch.Size <= limiter.MaxLimit, "batch.size is %d, outside 1 to %d", c.Batch.Size, limiter.MaxLimit)
	check(c.Timeout >= 0, "timeout is %v, below 0", c.Timeout)
	check(c.Patience >= 0, "patience is %v, below 0", c.Patience)
	check(c.Probe >= 0, "probe is %v, below 0", c.Probe)
	if err := c.Params.Validate(); err != nil {
		errs = append(errs, fmt.Errorf("params: %w", err))
	}
	return errors.Join(errs...)
}

// normalize replaces what is not set.
func (c Config) normalize() Config {
	c.Params.Members = slices.Clone(c.Params.Members)
	if c.Batch.Size == 0 {
		c.Batch.Size = DefaultBatch
	}
	if c.Timeout == 0 {
		c.Timeout = DefaultTimeout
	}
	if c.Patience == 0 {
		c.Patience = c.Timeout
	}
	if c.Probe == 0 {
		c.Probe = DefaultProbe
	}
	if c.Clock == nil {
		c.Clock = monotonic.Process
	}
	return c
}

// self returns what the parameters say of the member.
func (c *Config) self() ledger.Member {
	for _, m := range c.Params.Members {
		if m.Name == c.Member {
			return m
		}
	}
	return ledger.Member{}
}
