package pool

import "fmt"

// InvalidError says that a command or parameters cannot be right. Nothing changed.
type InvalidError struct {
	Field   string // as it is called in Command or Params
	Problem string // what is wrong with it, and how to put it right
}

// Error names the field.
func (e *InvalidError) Error() string { return fmt.Sprintf("%s %s", e.Field, e.Problem) }

// BehindError says that the holder has seen a share that this memory does not
// remember: the memory is an old copy, of a leader before, a replica that was left
// behind or a backup. Nothing changed, and nothing may be granted from it. The owner
// of the memory begins a new one with a term above both, or leaves the pool to
// another coordinator.
type BehindError struct {
	Term int64 // that the holder has seen
}

// Error names the term.
func (e *BehindError) Error() string {
	return fmt.Sprintf("a holder has seen a later share, of term %d: this memory of the pool is an old copy", e.Term)
}
