package limiter

import "fmt"

// Op is what a command asks of a machine.
type Op uint8

// The operations.
const (
	// Take asks for at least Min and at most Want units.
	Take Op = iota
	// Return gives back Want unspent units of the grant that Windows, At and Tenant
	// name. It takes effect only while exactly those windows are open, or while the
	// grant still counts by its instant, so a late return is forfeited rather than
	// credited to what others were granted. It is not idempotent: a caller that sends it
	// sends it once.
	Return
	// Peek answers like Take and changes nothing. Its result is a forecast: Granted
	// is what Take would be granted, Remaining can be had now, Min in RetryAfter, and
	// Limit in ResetAfter.
	Peek
	// Reset forgets what was granted to the key. Units in hand stay good, so the
	// open windows may admit them on top of their limit.
	Reset
)

// A Command is one request to a machine.
type Command struct {
	Op      Op
	Min     int64   // Take: the least useful amount, at least 1
	Want    int64   // Take: the most wanted, at least Min; Return: the amount given back
	Tenant  string  // that asks or gives back, when Params.Fairness splits the limit
	Windows Windows // Return: the windows of the grant
	At      Instant // Return: the instant of the grant, Result.Now
	// First says that the holder did not lease in the open windows yet. It is
	// counted, to guide how much each is granted, and never trusted.
	First  bool
	Memory Memory // what the store that runs the machine still remembers

	// Floor is the newest instant that the holder knows the store's clock to have
	// reached, 0 when it knows none. Nothing is granted before it: a store that lost
	// its memory while its clock was set back would serve the same windows again. It
	// holds for this command alone, so a false one harms only its sender.
	Floor Instant
}

// Validate reports a command that no caller may send: an unknown operation, an
// amount below 1, or more wanted than the least useful amount allows. A store
// checks every command that came over a wire before it runs Step.
func (c Command) Validate() error {
	switch {
	case c.Op > Reset:
		return fmt.Errorf("op is %d, which is not Take (%d), Return (%d), Peek (%d) or Reset (%d)", c.Op, Take, Return, Peek, Reset)
	case c.Op == Reset:
		return nil
	case c.Want < 1:
		return fmt.Errorf("want is %d, must be at least 1", c.Want)
	case c.Op != Return && (c.Min < 1 || c.Min > c.Want):
		return fmt.Errorf("min is %d, outside 1 to want (%d)", c.Min, c.Want)
	case c.Floor < 0:
		return fmt.Errorf("floor is %dµs, must not be negative", c.Floor)
	case c.Windows.N < 0 || c.Windows.N > MaxRates:
		return fmt.Errorf("windows has %d entries, more than %d", c.Windows.N, MaxRates)
	}
	return nil
}

// Reason says why a result grants what it grants.
type Reason uint8

// The reasons.
const (
	Granted         Reason = iota // at least Min was granted, or a return was applied
	Exhausted                     // fewer than Min units are left; RetryAfter says until when
	TooLarge                      // Min exceeds what is ever granted at once
	StaleGeneration               // the command's parameters are older than the state's
	ClockBehind                   // the store's clock is before an instant already served
	Amnesia                       // the store may have forgotten grants that still count
	Forfeited                     // a return came too late, or named what was never granted
)

var reasonNames = [...]string{
	Granted: "Granted", Exhausted: "Exhausted", TooLarge: "TooLarge", StaleGeneration: "StaleGeneration",
	ClockBehind: "ClockBehind", Amnesia: "Amnesia", Forfeited: "Forfeited",
}

// String returns the reason's name, its number when it has none.
func (r Reason) String() string {
	if int(r) < len(reasonNames) {
		return reasonNames[r]
	}
	return fmt.Sprintf("Reason(%d)", uint8(r))
}

// A Result answers a command. It holds every number a caller has to report, so
// that no caller computes one again.
type Result struct {
	Granted    int64     // units granted or taken back; 0 or between Min and Want
	Remaining  int64     // units that can still be granted now, to this tenant; never negative
	Limit      int64     // the most that can be left of the rate that binds; of a tenant what it can have of the window
	ResetAfter Micros    // until nothing counts any more of the rate that binds
	ExpiresIn  Micros    // how long a grant lives: until the first window ends, or Lifetime
	RetryAfter Micros    // refused: until the command may succeed; 0 when it never will
	Delay      Micros    // LeakyBucket: how long the grant has to wait for its turn
	Windows    Windows   // the windows the grant is charged to, as they are now
	Now        Instant   // the store's time of the decision
	Algorithm  Algorithm // that decided; after an edit the old one may be in force for a while
	Reason     Reason
}
