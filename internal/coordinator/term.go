package coordinator

import (
	"context"
	"errors"

	"github.com/weir-dev/weir/pkg/limiter"
)

// ErrFenced is what TermStore.End's error wraps when a later term has begun.
var ErrFenced = errors.New("a later term has begun")

// ErrLapsed is what TermStore.Begin's error wraps when this process no longer leads.
var ErrLapsed = errors.New("this process no longer holds the lock of leader election")

// A TermStore records the term of leadership. It survives the process.
type TermStore interface {
	// Begin raises the recorded term by at least one and takes out what the
	// predecessor handed over, in one atomic step. leads reports whether this process
	// still leads. It is asked after the record is read and before it is written, so that
	// a process that stood still meanwhile raises no term above its successor's; then
	// the error wraps ErrLapsed.
	Begin(ctx context.Context, leads func() bool) (Handover, error)

	// End records that a term stopped and what it hands over, unless a later term
	// has begun: then it changes nothing and returns ErrFenced.
	End(ctx context.Context, h Handover) error

	// Clear deletes what is left of the hand-overs to terms up to this one, which has
	// begun. Parts that it does not reach only cost room, and the next term finds them.
	Clear(ctx context.Context, term uint64) error
}

// A Handover is what one term leaves to the next.
type Handover struct {
	// Term is the number of a term: the one that begins when Begin returns it, the one that
	// ends when End takes it.
	Term uint64
	// First says that no term was ever recorded, so there is nobody whose grants
	// could have been forgotten. Only Begin sets it.
	First bool
	// Stopped is the instant, on the store's clock, after which the predecessor
	// served nothing; 0 when it did not stop in order.
	Stopped limiter.Instant
	// Pools is what the Export of the pools' memory wrote, and Ledger that of the
	// store's; nil when there is none. Returns says which sidecars were absent, nil when no
	// window is open in which one may have been.
	Pools, Ledger, Returns []byte
	// Lost says why Ledger is nil although the predecessor handed one over. Only Begin
	// sets it.
	Lost error
}
