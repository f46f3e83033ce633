package ledger

import "github.com/weir-dev/weir/pkg/limiter"

// Step applies c to s at the instant now, by the parameters, which are valid by
// Validate. It panics on an Op it does not know.
func (s State) Step(p Params, now limiter.Instant, c Command) (State, Grant) {
	panic("ledger: not built")
}

// Validate reports what is wrong with the parameters.
func (p Params) Validate() error { panic("ledger: not built") }

// Validate reports a command that no caller may send.
func (c Command) Validate() error { panic("ledger: not built") }
