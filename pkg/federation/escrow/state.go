package escrow

import (
	"github.com/weir-dev/weir/pkg/federation/ledger"
	"github.com/weir-dev/weir/pkg/limiter"
)

// State is what is remembered of one escrow. The zero value is that of one never
// used.
type State struct {
	Holder string
	Seq    int64 // of the last command that was prepared
	Floor  int64 // answers to commands up to this one came too late: a Release was prepared after
	// Next is what may be used without asking of windows that begin later: what the
	// coordinator granted last, and no more than it was allowed up to.
	Next   int64
	Latest limiter.Instant // the clock's last reading

	Epoch   ledger.Epoch    // of the last answer, or of an open slice: then Term is that of the one before
	Ends    limiter.Instant // from which on nothing of the window is handed on
	Slice   int64           // units of the window that need no grant
	Before  int64           // granted in the window by terms before
	Granted int64           // granted in Epoch
	Taken   int64
	Asked   int64
}

// remaining returns the units that are not taken, open or over.
func (s *State) remaining() int64 { return s.Slice + s.Before + s.Granted - s.Taken }

// open reports whether units are handed on.
func (s *State) open() bool { return s.Latest < s.Ends }

// begin replaces the window, which has nothing left.
func (s *State) begin(e ledger.Epoch, ends limiter.Instant) {
	s.Epoch, s.Ends = e, ends
	s.Slice, s.Before, s.Granted, s.Taken, s.Asked = 0, 0, 0, 0, 0
}

// read takes note of the clock. By one that was set back nobody knows how long the
// window lasts: nothing of it is handed on until the coordinator answers again.
func (s *State) read(now limiter.Instant) {
	if now < s.Latest {
		s.Ends = 0
	}
	s.Latest = now
}

// Keep returns the instant up to which an escrow is to be remembered. It is the
// longest window after the last command and after the window's end: no window that it
// knew can be open then, so a process that begins with another name and memory finds nothing
// that it could use twice. The slice has to be sent again.
func (s *State) Keep() limiter.Instant { return max(s.Latest, s.Ends).Add(limiter.MaxWindow) }
