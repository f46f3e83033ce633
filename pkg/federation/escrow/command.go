package escrow

import (
	"github.com/weir-dev/weir/pkg/federation/ledger"
	"github.com/weir-dev/weir/pkg/limiter"
)

// Op says what a command asks for.
type Op uint8

// The operations.
const (
	// Take asks for at least Min and at most Want units of the open window.
	Take Op = iota + 1
	// Return puts back Want unspent units that were taken in the window of Epoch, which
	// has to be open still. It is sent only once.
	Return
	// Ask prepares a command for the coordinator: Result.Seq, Epoch, Granted and Holder
	// are to be sent with it.
	Ask
	// Release prepares to give back what is not taken, but for Keep units: it takes
	// them off and returns the command to send, as Ask does.
	Release
	// Fill brings the coordinator's answer to a command that Ask or Release prepared;
	// Grant.Seq is its number or, when it was stale, that of a later one.
	Fill
	// Open begins a window with a slice, without asking the coordinator: Epoch names
	// it, Slice is what was granted for it, and of that no more counts than this escrow
	// heard itself. A window that is or was open, is over, or began before the escrow's
	// memory did changes nothing.
	Open
	// Peek changes nothing.
	Peek
)

// A Command is one message of a process of the region.
type Command struct {
	Op        Op
	Min, Want int64 // Take: 1 ≤ Min ≤ Want; Return: Want ≥ 1
	Keep      int64 // Release: units that stay in hand
	// Holder is of Ask and Release a new random name, taken when the escrow has none;
	// of Fill the Result.Holder that the command was prepared for: what another was
	// answered changes nothing.
	Holder string
	Epoch  ledger.Epoch // Return and Open, which heed the Index only
	Slice  int64        // Open

	Grant ledger.Grant // Fill
	// At is Result.Now of an earlier answer of the escrow, of Fill that of the Ask or
	// Release. ExpiresIn and Age are as of the receipt of that answer: so no delay on
	// the way to the escrow lengthens a window. Fill and Open.
	At limiter.Instant
	// ExpiresIn is how long the window lasts at least: the lifetime that the coordinator
	// heard, counted from before its command was sent, less the margin for clocks that
	// differ in rate (account.DeadlineOf). It may be below 0. Fill and Open.
	ExpiresIn limiter.Micros
	// Age is how long ago the window began at most. Open.
	Age limiter.Micros

	// Since is when the escrow's uninterrupted memory began, on its clock. The escrow
	// sets it by itself.
	Since limiter.Instant
}

// A Result answers a command.
type Result struct {
	Granted int64           // Take: 0 or from Min to Want. Return: what was put back
	Now     limiter.Instant // by the escrow's clock
	// Epoch is the window that is open, zero for none; the rest is of it.
	Epoch     ledger.Epoch
	ExpiresIn limiter.Micros // for which what was taken may be spent
	Remaining int64          // units that can still be taken
	Taken     int64          // units that processes have taken, returns taken off
	Asked     int64          // what processes wanted altogether, granted or not
	// Holder, Seq, Told, From and Slice are what Ask and Release send the coordinator:
	// Told is ledger.Command.Granted, From its Epoch and Slice its Slice.
	Holder string
	Seq    int64
	Told   int64
	From   ledger.Epoch
	Slice  int64
}
