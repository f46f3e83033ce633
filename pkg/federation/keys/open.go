package keys

import (
	"slices"

	"github.com/weir-dev/weir/pkg/federation/ledger"
	"github.com/weir-dev/weir/pkg/limiter"
)

// Open brings the ledger of a budget with a key to the instant now. It returns the window that
// is open, and what the member is answered, without the grants. p is valid, and the ledger is
// of the memory or of one before. No key may have the units that the ledger itself granted, or slices.
func Open(s ledger.State, p ledger.Params, now limiter.Instant, memory ledger.Memory, member string) (ledger.State, Window, Reply) {
	index := int64(now) / int64(p.Window)
	next, g := s.Step(p, now, ledger.Command{Op: ledger.Reserve, Epoch: ledger.Epoch{Index: index, Term: memory.Term}, Memory: memory})
	reply := Reply{Reason: g.Reason, Epoch: g.Epoch, Limit: g.Limit, ExpiresIn: g.ExpiresIn, RetryAfter: g.RetryAfter, Now: g.Now}
	switch {
	case g.Reason != ledger.Granted: // nothing changed
		return s, Window{}, reply
	case !slices.Contains(p.Names(), member):
		reply.Reason, reply.RetryAfter = ledger.Unknown, g.ExpiresIn
	case limiter.Instant(index*int64(p.Window)) < memory.Since:
		reply.Reason, reply.RetryAfter = ledger.Amnesia, g.ExpiresIn
	}
	withheld := next.Allocation(p).Granted
	return next, Window{
		Length: p.Window, Index: index, Pool: max(0, g.Limit-withheld), Block: p.Block, Keys: p.Keys,
		Withheld: withheld, Overrides: p.Overrides,
	}, reply
}
