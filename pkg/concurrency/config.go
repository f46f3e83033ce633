package concurrency

import (
	"errors"
	"fmt"
	"time"

	"github.com/weir-dev/weir/pkg/concurrency/adaptive"
	"github.com/weir-dev/weir/pkg/concurrency/pool"
	"github.com/weir-dev/weir/pkg/concurrency/slots"
)

// Config says how a guard keeps its part of a pool.
type Config struct {
	Key pool.Key
	// Holder is this process: pod UID and boot nonce, never a name that can be used
	// again.
	Holder string
	Params pool.Params
	Law    adaptive.Config
	Slots  slots.Config
	// PerKey says that the limit is that of every key of requests: those of different keys do
	// not share it. Such a guard infers nothing and has no partitions. In its queue requests wait
	// for a slot of their key, and none waits for those of another.
	PerKey bool

	Heartbeat Heartbeat
	// Margin is how long before its share may be granted to others the guard stops to
	// use it: at least as long as requests take, unless they are aborted; at least 0,
	// and less than Params.TTL − Heartbeat.Interval.
	Margin   time.Duration
	OnFenced FenceAction
	OnOutage OutageAction
}

// Heartbeat says how often a guard asks for its share.
type Heartbeat struct {
	// Interval is the time between beats, positive and less than Params.TTL. A beat
	// that is not answered within it is given up.
	Interval time.Duration
	// MinInterval is the least time between beats, positive and at most Interval. It is
	// the time to the first retry when the coordinator fails; it doubles up to Interval.
	MinInterval time.Duration
	// Eager beats at once when that frees a share or fills one.
	Eager bool
}

// FenceAction says what happens to requests in flight when the share expires.
type FenceAction uint8

// The fence actions.
const (
	Drain FenceAction = iota // they finish
	Abort                    // Slot.Fenced asks them to end
)

// OutageAction says what a guard does when its share expired because the coordinator
// does not answer.
type OutageAction uint8

// The outage actions.
const (
	FailClosed OutageAction = iota // nothing is admitted: the guard is fenced
	LocalOnly                      // up to what the guard infers is admitted, and nothing aborted
)

// Validate reports what is wrong with the configuration.
func (c Config) Validate() error {
	var errs []error
	check := func(ok bool, format string, args ...any) {
		if !ok {
			errs = append(errs, fmt.Errorf(format, args...))
		}
	}
	h, ttl := c.Heartbeat, duration(c.Params.TTL)
	check(c.Holder != "", "holder is empty; name the process by pod UID and boot nonce")
	check(h.Interval > 0, "heartbeat interval is %v, not positive", h.Interval)
	check(h.MinInterval > 0 && h.MinInterval <= h.Interval, "heartbeat minInterval is %v, outside over 0 to interval, which is %v", h.MinInterval, h.Interval)
	check(h.Interval < ttl, "heartbeat interval is %v, not below leaseTTL, which is %v: shares would expire between beats", h.Interval, ttl)
	check(c.Margin >= 0 && c.Margin < ttl-h.Interval, "margin is %v, outside 0 to less than leaseTTL − interval, which is %v: shares would expire between beats", c.Margin, ttl-h.Interval)
	check(!c.PerKey || c.Law.Algorithm == adaptive.Fixed, "law algorithm is %d, but a limit per key is not inferred: set it to Fixed", c.Law.Algorithm)
	check(!c.PerKey || len(c.Slots.Partitions) == 0, "slots have partitions, which a limit per key has not: remove them")
	check(c.OnFenced <= Abort, "onFenced is %d, which is unknown", c.OnFenced)
	check(c.OnOutage <= LocalOnly, "onOutage is %d, which is unknown", c.OnOutage)
	return errors.Join(append(errs, c.Law.Validate(), c.Slots.Validate())...)
}
