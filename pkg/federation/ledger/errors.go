package ledger

import "fmt"

// InvalidError says that parameters or a command cannot be right.
type InvalidError struct {
	Field string // from the outermost in, as "members[0].weight"
	Why   string // what is wrong with it, and what to choose
}

// Error names the field.
func (e *InvalidError) Error() string { return e.Field + " " + e.Why }

func invalid(field, why string, args ...any) error {
	return &InvalidError{Field: field, Why: fmt.Sprintf(why, args...)}
}

func outside(field string, got, low, high int64) error {
	return invalid(field, "is %d: choose %d to %d", got, low, high)
}
