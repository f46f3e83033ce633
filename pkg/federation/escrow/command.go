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
	// has to be open still. Whoever sends it sends it once.
	Return
	// Ask prepares a command for the coordinator: Result.Seq, Epoch, Granted and Holder
	// are to be sent with it.
	Ask
	// Release prepares to give back what is not taken, but for Keep units: it takes
	// them off and returns the command to send, as Ask does.
	Release
	// Fill brings the coordinator's answer to the command numbered Grant.Seq or, when it
	// was stale, to a later one.
	Fill
	// Open begins a window with a slice, without asking the coordinator: Epoch names
	// it, Slice is what was told for it. A window that is open already, or is over,
	// changes nothing.
	Open
	// Peek changes nothing.
	Peek
)

// A Command is one message of a process of the region.
type Command struct {
	Op        Op
	Min, Want int64  // Take: 1 ≤ Min ≤ Want; Return: Want ≥ 1
	Keep      int64  // Release: units that stay in hand
	Holder    string // a new random name, taken when the escrow has none
	Epoch     ledger.Epoch
	Slice     int64 // Open

	Grant ledger.Grant // Fill
	// ExpiresIn is how long the window lasts at least: what is left of the lifetime that
	// the coordinator told, counted from before its command was sent, less the margin
	// for clocks that differ in rate (twotier.DeadlineOf). Fill and Open.
	ExpiresIn limiter.Micros
	// Age is how long ago the window began at most. Open.
	Age limiter.Micros

	Since limiter.Instant // start of the escrow's uninterrupted memory, on its clock
}

// A Result answers a command.
type Result struct {
	Granted int64 // Take: 0 or from Min to Want. Return: what was put back
	// Epoch is the window that is open, zero for none; the rest is of it.
	Epoch     ledger.Epoch
	ExpiresIn limiter.Micros // for which what was taken may be spent
	Remaining int64          // units that can still be taken
	Taken     int64          // units that processes have taken, returns taken off
	Asked     int64          // what processes wanted altogether, granted or not
	// Holder, Seq, Told and From are what Ask and Release tell the coordinator: Told is
	// ledger.Command.Granted and From its Epoch.
	Holder string
	Seq    int64
	Told   int64
	From   ledger.Epoch
}

// State is what is remembered of one escrow. The zero value is that of one never
// used.
type State struct {
	Holder string
	Seq    int64 // of the last command that was prepared
	Floor  int64 // answers to commands up to this one came too late: a Release was prepared after

	Epoch   ledger.Epoch    // of the last answer, or of an open slice: then Term is that of the one before
	Ends    limiter.Instant // from which on nothing of the window is handed on
	Slice   int64           // units of the window that need no grant
	Before  int64           // granted in the window by terms before
	Granted int64           // granted in Epoch
	Taken   int64
	Asked   int64
}
