package escrow

import "fmt"

// InvalidError says that a command cannot be right. Nothing changed.
type InvalidError struct {
	Field   string // as it is called in Command
	Problem string // what is wrong with it, and how to put it right
}

// Error names the field.
func (e *InvalidError) Error() string { return fmt.Sprintf("%s %s", e.Field, e.Problem) }

func outside(field string, got, low, high int64) error {
	return &InvalidError{field, fmt.Sprintf("is %d: choose %d to %d", got, low, high)}
}

func unknown(field string, got uint8) error {
	return &InvalidError{field, fmt.Sprintf("has the value %d, which has no meaning: choose a named one", got)}
}
