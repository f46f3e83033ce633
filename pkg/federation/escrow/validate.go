package escrow

import (
	"fmt"

	"github.com/weir-dev/weir/pkg/federation/ledger"
	"github.com/weir-dev/weir/pkg/limiter"
)

// Bounds that keep every sum exact, in a Lua number too.
const (
	maxCount  = int64(1) << 52 // of sequence numbers, windows, terms and instants
	maxHolder = 256            // bytes of a holder's name
)

// Validate returns the first thing wrong with the command as an *InvalidError, nil
// when a process may send it.
func (c *Command) Validate() error {
	switch c.Op {
	case Take:
		return c.validateTake()
	case Return:
		return first(within("Want", c.Want, 1, limiter.MaxLimit), within("Epoch.Index", c.Epoch.Index, 0, maxCount))
	case Ask:
		return c.validateHolder()
	case Release:
		return first(c.validateHolder(), within("Keep", c.Keep, 0, limiter.MaxLimit))
	case Fill:
		return first(c.validateHolder(), c.validateGrant(), c.validateLife())
	case Open:
		return first(
			within("Epoch.Index", c.Epoch.Index, 1, maxCount), within("Slice", c.Slice, 0, limiter.MaxLimit),
			within("Age", int64(c.Age), 0, int64(limiter.MaxWindow)), c.validateLife(),
		)
	case Peek:
		return nil
	default:
		return unknown("Op", uint8(c.Op))
	}
}

func (c *Command) validateTake() error {
	return first(within("Want", c.Want, 1, limiter.MaxLimit), within("Min", c.Min, 1, c.Want))
}

func (c *Command) validateHolder() error {
	if len(c.Holder) == 0 || len(c.Holder) > maxHolder {
		return &InvalidError{"Holder", fmt.Sprintf("has %d bytes: name the escrow in 1 to %d", len(c.Holder), maxHolder)}
	}
	return nil
}

func (c *Command) validateLife() error {
	return first(
		within("At", int64(c.At), 1, maxCount),
		within("ExpiresIn", int64(c.ExpiresIn), -int64(limiter.MaxWindow), int64(limiter.MaxWindow)),
	)
}

func (c *Command) validateGrant() error {
	g := &c.Grant
	if g.Reason < ledger.Granted || g.Reason > ledger.Forfeited {
		return unknown("Grant.Reason", uint8(g.Reason))
	}
	return first(
		within("Grant.Seq", g.Seq, 0, maxCount),
		within("Grant.Epoch.Index", g.Epoch.Index, 0, maxCount),
		within("Grant.Epoch.Term", g.Epoch.Term, 0, maxCount),
		within("Grant.Granted", g.Granted, 0, limiter.MaxLimit),
		within("Grant.Slice", g.Slice, 0, limiter.MaxLimit),
	)
}

func within(field string, got, low, high int64) error {
	if got < low || got > high {
		return outside(field, got, low, high)
	}
	return nil
}

func first(errs ...error) error {
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}
