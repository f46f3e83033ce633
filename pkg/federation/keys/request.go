package keys

import (
	"fmt"
	"hash/fnv"

	"github.com/weir-dev/weir/pkg/federation/ledger"
	"github.com/weir-dev/weir/pkg/limiter"
)

// MaxAsks bounds the asks of one Request, and MaxHash the bytes of a key's hash.
const (
	MaxAsks = 512
	MaxHash = 64
)

// A Request asks for units of several keys in one message.
type Request struct {
	Member string // the region that asks
	Asks   []KeyAsk
}

// A KeyAsk asks for units of one key.
type KeyAsk struct {
	Hash string // of the value, as store.HashValue
	Ask
}

// A Reply answers a Request.
type Reply struct {
	// Reason is ledger.Granted, also where no key has units left. Otherwise no key is granted
	// any, for RetryAfter: Amnesia, Behind, Mismatched or Unknown.
	Reason     ledger.Reason
	Epoch      ledger.Epoch // that is open, as are Limit and ExpiresIn of it
	Limit      int64
	ExpiresIn  limiter.Micros
	RetryAfter limiter.Micros
	Now        limiter.Instant
	// Grants are those of the asks, in order; none where the Reason is another. One that lacks
	// units was not decided in time.
	Grants []Grant
	Room   Room // as the asks left it; the zero Room where the coordinator does not know
}

// Validate reports the first thing for which no region may send the request as a
// *ledger.InvalidError.
func (r Request) Validate() error {
	if len(r.Member) == 0 || len(r.Member) > ledger.MaxName {
		return invalid("member", "has %d bytes: name the region in 1 to %d", len(r.Member), ledger.MaxName)
	}
	if len(r.Asks) == 0 || len(r.Asks) > MaxAsks {
		return invalid("asks", "has %d entries: ask for 1 to %d keys at once", len(r.Asks), MaxAsks)
	}
	for i, a := range r.Asks {
		at := fmt.Sprintf("asks[%d].", i)
		switch {
		case len(a.Hash) == 0 || len(a.Hash) > MaxHash:
			return invalid(at+"hash", "has %d bytes: choose 1 to %d", len(a.Hash), MaxHash)
		case a.Want < 1 || a.Want > limiter.MaxLimit:
			return invalid(at+"want", "is %d: choose 1 to %d", a.Want, limiter.MaxLimit)
		case a.Min < 1 || a.Min > a.Want:
			return invalid(at+"min", "is %d: choose 1 to %d", a.Min, a.Want)
		}
	}
	return nil
}

func invalid(field, why string, args ...any) error {
	return &ledger.InvalidError{Field: field, Why: fmt.Sprintf(why, args...)}
}

// GroupOf returns the group of a key.
func GroupOf(hash string) int {
	h := fnv.New32a()
	_, _ = h.Write([]byte(hash)) // never fails
	return int(h.Sum32() % Groups)
}
