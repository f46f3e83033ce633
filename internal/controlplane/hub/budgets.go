package hub

import "github.com/weir-dev/weir/pkg/federation/ledger"

// Budgets knows what this hub keeps. Its methods are called often and by several
// goroutines; they do not block, and the caller does not change what they return.
type Budgets interface {
	// Budget returns what the budget of that id is divided by, and false when this hub
	// does not keep it.
	Budget(id string) (ledger.Params, bool)
	// Members returns the names of all members of all budgets that this hub keeps, each
	// once or more often. The hub's own may be among them.
	Members() []string
	// Credentialed returns the names of those that have a Secret in the controller's namespace,
	// each once: a bounded number, whatever budgets name. The hub's own is not among them.
	Credentialed() []string
}

// Leadership is what the lock of leader election knows.
type Leadership interface {
	// Held reports whether this process is certain to lead still.
	Held() bool
}
