package pool

import "github.com/weir-dev/weir/pkg/limiter"

// Op says what a command asks for.
type Op uint8

// The operations.
const (
	// Beat reports and asks for a share.
	Beat Op = iota + 1
	// Leave gives up the share at once. A holder sends it only when nothing is in
	// flight any more.
	Leave
)

// A Command is one message of a holder.
type Command struct {
	Op Op
	// Holder is one process: pod UID and boot nonce, never a name that can be used
	// again.
	Holder string
	// Seq rises with every command of the holder. A command that does not exceed all
	// before it changes nothing.
	Seq int64

	// Term and Applied name the share that the holder enforces: Held units. They are
	// zero while it never had one. Held is zero when it expired.
	// They are read together with InFlight, at one instant.
	Term, Applied int64
	Held          int64
	InFlight      int64 // requests, at least 0
	Peak          int64 // the most in flight since the last beat that was answered, at least InFlight

	// Limit is what the holder infers that the backend bears, 0 for no opinion: when
	// it served nothing since its last beat, what it believes is old.
	Limit int64
}

// A Grant answers a command.
type Grant struct {
	// Seq is that of the last command of the holder that changed anything: this one,
	// or when it was stale the one whose share is sent again. The later of two grants
	// is the one with the larger term, or the larger Seq of the same term. A holder
	// that has taken one never goes back to an earlier one.
	Seq              int64
	Term, Generation int64 // of the share; Generation is 0 when there is none: the holder is gone
	Share            int64
	// TTL is how long the share lasts from the instant the command was sent. The
	// holder counts it by its own clock, however late the answer arrives.
	TTL limiter.Micros

	Limit   int64 // the fleet's
	Holders int64 // that live
	// Granted is the sum of all shares, InFlight that of what holders reported last.
	Granted, InFlight int64
	// Occupied is the most that the fleet can have had in flight up to the command:
	// what is reserved for everybody, and what the holder reports above its own
	// reserve. Bound is what it may have been: the largest limit since all reserves
	// last fitted below the limit. More than Bound is an overshoot. Every state of the
	// pool is in the answer to the command that ends it.
	Occupied, Bound int64
	// Quarantined is how much longer nothing more is granted than is in use already; 0
	// when more may be. From such a grant a holder takes no more than what it holds at
	// the instant the grant arrives: when its share expired on the way, nothing.
	Quarantined limiter.Micros
}
