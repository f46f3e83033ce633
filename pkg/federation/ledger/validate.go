package ledger

import (
	"fmt"
	"slices"

	"github.com/weir-dev/weir/pkg/limiter"
)

// Validate reports the first thing that is wrong with the parameters as an
// *InvalidError.
func (p Params) Validate() error {
	switch {
	case p.Limit < 1 || p.Limit > limiter.MaxLimit:
		return outside("limit", p.Limit, 1, limiter.MaxLimit)
	case p.Window < limiter.MinWindow || p.Window > limiter.MaxWindow:
		return outside("window", int64(p.Window), int64(limiter.MinWindow), int64(limiter.MaxWindow))
	case p.Strategy > Static:
		return invalid("strategy", "is %d: choose FairShare (%d), FirstCome (%d) or Static (%d)", p.Strategy, FairShare, FirstCome, Static)
	case p.Block < 0 || p.Block > limiter.MaxLimit:
		return outside("block", p.Block, 0, limiter.MaxLimit)
	case p.Keys < 0 || p.Keys > MaxKeys:
		return outside("keys", p.Keys, 0, MaxKeys)
	case len(p.Others) >= limiter.MaxRates:
		return invalid("others", "has %d entries: name up to %d", len(p.Others), limiter.MaxRates-1)
	case len(p.Members) < 1 || len(p.Members) > MaxMembers:
		return invalid("members", "has %d entries: name 1 to %d", len(p.Members), MaxMembers)
	}
	for i, window := range p.Others {
		at := fmt.Sprintf("others[%d]", i)
		switch {
		case window < limiter.MinWindow || window > limiter.MaxWindow:
			return outside(at, int64(window), int64(limiter.MinWindow), int64(limiter.MaxWindow))
		case window == p.Window || i > 0 && window <= p.Others[i-1]:
			return invalid(at, "is %d: name the length of windows of other rates, ascending, each once", window)
		}
	}
	var nominal int64
	for i, m := range p.Members {
		at := fmt.Sprintf("members[%d].", i)
		if i > 0 && m.Name <= p.Members[i-1].Name {
			return invalid(at+"name", "%q is not after %q: order the members by name, each once", m.Name, p.Members[i-1].Name)
		}
		if err := m.validate(at); err != nil {
			return err
		}
		nominal += min(m.Nominal, limiter.MaxLimit)
	}
	if nominal > p.Limit {
		return invalid("members", "have nominal shares of %d altogether: lower them to the limit of %d", nominal, p.Limit)
	}
	return p.validateOverrides()
}

func (m Member) validate(at string) error {
	switch {
	case !named(m.Name):
		return invalid(at+"name", "has %d bytes: choose 1 to %d", len(m.Name), MaxName)
	case m.Weight < 1 || m.Weight > MaxWeight:
		return outside(at+"weight", m.Weight, 1, MaxWeight)
	case m.Nominal < 0 || m.Nominal > limiter.MaxLimit:
		return outside(at+"nominal", m.Nominal, 0, limiter.MaxLimit)
	case m.Kept < 0 || m.Kept > m.Nominal:
		return outside(at+"kept", m.Kept, 0, m.Nominal)
	case m.Borrowing > limiter.MaxLimit:
		return outside(at+"borrowing", m.Borrowing, -1, limiter.MaxLimit)
	}
	return nil
}

// ValidateGrant reports the first thing for which a coordinator cannot serve the command with these
// parameters as an *InvalidError. Reserve is not for others to send: a coordinator that sets units
// aside does so itself.
func (c Command) ValidateGrant(p Params) error {
	if c.Op == Reserve {
		return invalid("op", "is Reserve, which a coordinator carries out by itself: send Lease, Release or Report")
	}
	if err := p.Validate(); err != nil {
		return err
	}
	return c.Validate()
}

// Validate reports the first thing for which no caller may send the command as an
// *InvalidError.
func (c Command) Validate() error {
	switch {
	case c.Op < Lease || c.Op > Reserve:
		return invalid("op", "is %d: choose Lease (%d), Release (%d), Report (%d) or Reserve (%d)", c.Op, Lease, Release, Report, Reserve)
	case c.Memory.Term < 1 || c.Memory.Term > limiter.MaxExact:
		return outside("memory.term", c.Memory.Term, 1, limiter.MaxExact)
	case c.Memory.Since < 0 || c.Memory.Since > limiter.MaxInstant:
		return outside("memory.since", int64(c.Memory.Since), 0, int64(limiter.MaxInstant))
	case c.Epoch.Index < 0 || c.Epoch.Index > maxIndex:
		return outside("epoch.index", c.Epoch.Index, 0, maxIndex)
	case c.Epoch.Term < 0 || c.Epoch.Term > limiter.MaxExact:
		return outside("epoch.term", c.Epoch.Term, 0, limiter.MaxExact)
	case c.Granted < 0 || c.Granted > limiter.MaxLimit:
		return outside("granted", c.Granted, 0, limiter.MaxLimit)
	case c.Op == Reserve && c.Epoch.Term == 0:
		return outside("epoch.term", c.Epoch.Term, 1, limiter.MaxExact)
	case c.Op == Reserve:
		return nil
	case !named(c.Member):
		return invalid("member", "has %d bytes: name the region in 1 to %d", len(c.Member), MaxName)
	case !named(c.Holder):
		return invalid("holder", "has %d bytes: name the process in 1 to %d", len(c.Holder), MaxName)
	case c.Demand < 0 || c.Demand > limiter.MaxLimit:
		return outside("demand", c.Demand, 0, limiter.MaxLimit)
	case c.Weight < 0 || c.Weight > MaxClaim:
		return outside("weight", c.Weight, 0, MaxClaim)
	case c.Slice < 0 || c.Slice > limiter.MaxLimit:
		return outside("slice", c.Slice, 0, limiter.MaxLimit)
	case c.Born < 0 || c.Born > limiter.MaxExact:
		return outside("born", c.Born, 0, limiter.MaxExact)
	case c.List < 0 || c.List > limiter.MaxExact:
		return outside("list", c.List, 0, limiter.MaxExact)
	}
	if err := c.Tenants.validate(c.Weight); err != nil {
		return err
	}
	switch {
	case c.Op == Report:
		return c.validateUsage()
	case c.Seq < 1 || c.Seq > limiter.MaxExact:
		return outside("seq", c.Seq, 1, limiter.MaxExact)
	case c.Op == Lease && (c.Want < 1 || c.Want > limiter.MaxLimit):
		return outside("want", c.Want, 1, limiter.MaxLimit)
	case c.Op == Lease && (c.Min < 1 || c.Min > c.Want):
		return outside("min", c.Min, 1, c.Want)
	}
	return nil
}

func (t Tenants) validate(weight int64) error {
	switch {
	case t.Unmet < 0 || t.Unmet > weight:
		return outside("tenants.unmet", t.Unmet, 0, weight)
	case t.Met < 0 || t.Met > limiter.MaxLimit:
		return outside("tenants.met", t.Met, 0, limiter.MaxLimit)
	case t.Met > 0 && t.Unmet == 0:
		return invalid("tenants.unmet", "is 0 while tenants.met is %d: those that want most by weight are never met", t.Met)
	}
	return nil
}

func (c *Command) validateUsage() error {
	if len(c.Usage) > MaxClosed {
		return invalid("usage", "has %d windows: report at most %d at once", len(c.Usage), MaxClosed)
	}
	for i, u := range c.Usage {
		at := fmt.Sprintf("usage[%d].", i)
		switch {
		case u.Index < 0 || u.Index > maxIndex:
			return outside(at+"index", u.Index, 0, maxIndex)
		case u.Admitted < 0 || u.Admitted > maxCount:
			return outside(at+"admitted", u.Admitted, 0, maxCount)
		case u.Refused < 0 || u.Refused > maxCount:
			return outside(at+"refused", u.Refused, 0, maxCount)
		case slices.ContainsFunc(c.Usage[:i], func(o Usage) bool { return o.Index == u.Index }):
			return invalid(at+"index", "is %d, as before: report a window once", u.Index)
		}
	}
	return nil
}

func named(name string) bool { return len(name) > 0 && len(name) <= MaxName }
