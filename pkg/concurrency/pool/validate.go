package pool

import (
	"fmt"

	"github.com/weir-dev/weir/pkg/limiter"
)

// Bounds that keep every sum over a pool's holders exact, in a Lua number too.
const (
	MaxTTL      = 3600 * limiter.Second
	MaxInFlight = 1 << 31 // of one holder
	maxCount    = 1 << 52 // of sequence numbers, terms and generations
	maxHolder   = 256     // bytes of a holder's name
)

// Validate returns the first thing wrong with the parameters as an *InvalidError,
// nil when they can be worked by.
func (p *Params) Validate() error {
	switch {
	case p.Min < 1 || p.Min > MaxLimit:
		return outside("Min", p.Min, 1, MaxLimit)
	case p.Max < p.Min || p.Max > MaxLimit:
		return outside("Max", p.Max, p.Min, MaxLimit)
	case p.Initial < p.Min || p.Initial > p.Max:
		return outside("Initial", p.Initial, p.Min, p.Max)
	case p.Aggregate > Min:
		return unknown("Aggregate", uint8(p.Aggregate))
	case p.Allocation > DemandProportional:
		return unknown("Allocation", uint8(p.Allocation))
	case p.Handoff > Occupancy:
		return unknown("Handoff", uint8(p.Handoff))
	case p.TTL < 1 || p.TTL > MaxTTL:
		return outside("TTL", int64(p.TTL), 1, int64(MaxTTL))
	case p.Quarantine < 0 || p.Quarantine > MaxTTL:
		return outside("Quarantine", int64(p.Quarantine), 0, int64(MaxTTL))
	case p.Generation < 0 || p.Generation > maxCount:
		return outside("Generation", p.Generation, 0, maxCount)
	}
	return nil
}

// Validate returns the first thing wrong with the command as an *InvalidError, nil
// when a holder may send it.
func (c *Command) Validate() error {
	switch {
	case c.Op != Beat && c.Op != Leave:
		return unknown("Op", uint8(c.Op))
	case len(c.Holder) == 0 || len(c.Holder) > maxHolder:
		return &InvalidError{"Holder", fmt.Sprintf("has %d bytes: name the process in 1 to %d", len(c.Holder), maxHolder)}
	case c.Seq < 1 || c.Seq > maxCount:
		return outside("Seq", c.Seq, 1, maxCount)
	case c.Term < 0 || c.Term > maxCount:
		return outside("Term", c.Term, 0, maxCount)
	case c.Applied < 0 || c.Applied > maxCount:
		return outside("Applied", c.Applied, 0, maxCount)
	case c.Held < 0 || c.Held > MaxLimit:
		return outside("Held", c.Held, 0, MaxLimit)
	case c.InFlight < 0 || c.InFlight > MaxInFlight:
		return outside("InFlight", c.InFlight, 0, MaxInFlight)
	case c.Peak < c.InFlight || c.Peak > MaxInFlight:
		return outside("Peak", c.Peak, c.InFlight, MaxInFlight)
	case c.Limit < 0 || c.Limit > MaxLimit:
		return outside("Limit", c.Limit, 0, MaxLimit)
	case c.Op == Leave && c.InFlight > 0:
		return &InvalidError{"InFlight", fmt.Sprintf("is %d: leave when nothing is in flight any more", c.InFlight)}
	}
	return nil
}

func outside(field string, got, low, high int64) error {
	return &InvalidError{field, fmt.Sprintf("is %d: choose %d to %d", got, low, high)}
}

func unknown(field string, got uint8) error {
	return &InvalidError{field, fmt.Sprintf("has the value %d, which has no meaning: choose a named one", got)}
}

// Validate returns the first thing wrong with the memory as an *InvalidError, nil
// when a State can have it.
func (m *Memory) Validate() error {
	if m.Params != (Params{}) || len(m.Holders) > 0 {
		if err := m.Params.Validate(); err != nil {
			return err
		}
	}
	switch {
	case m.Term < 1 || m.Term > maxCount:
		return outside("Term", m.Term, 1, maxCount)
	case m.Generation < 0 || m.Generation > maxCount:
		return outside("Generation", m.Generation, 0, maxCount)
	case m.Limit < 0 || m.Limit > MaxLimit:
		return outside("Limit", m.Limit, 0, MaxLimit)
	case m.Bound < 0 || m.Bound > maxCount:
		return outside("Bound", m.Bound, 0, maxCount)
	case m.Quarantined < 0 || m.Quarantined > MaxTTL:
		return outside("Quarantined", int64(m.Quarantined), 0, int64(MaxTTL))
	}
	known := make(map[string]bool, len(m.Holders))
	for i := range m.Holders {
		r := &m.Holders[i]
		if known[r.Holder] {
			return &InvalidError{"Holders", fmt.Sprintf("names %q twice: keep the later record", r.Holder)}
		}
		known[r.Holder] = true
		if err := r.validate(m.Generation); err != nil {
			return err
		}
	}
	return nil
}

func (r *Record) validate(newest int64) error {
	c := Command{Op: Beat, Holder: r.Holder, Seq: r.Seq, Held: r.Held, InFlight: r.InFlight, Peak: r.Peak, Limit: r.Limit}
	switch {
	case r.Generation < 0 || r.Generation > newest:
		return outside("Generation", r.Generation, 0, newest)
	case r.Share < 0 || r.Share > MaxLimit:
		return outside("Share", r.Share, 0, MaxLimit)
	case r.Unacked < r.Share || r.Unacked > MaxLimit:
		return outside("Unacked", r.Unacked, r.Share, MaxLimit)
	case r.Expires > MaxTTL:
		return outside("Expires", int64(r.Expires), 1, int64(MaxTTL))
	}
	return c.Validate()
}
