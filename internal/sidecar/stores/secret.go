package stores

import "fmt"

// A Secret holds the credentials that a store names. It is kept in memory only,
// and prints without its values.
type Secret struct {
	Name    string // as policy.Store.Secret
	Version string // changes with the values
	Data    map[string][]byte
}

// Format implements fmt.Formatter: whatever the verb, values are not shown.
func (s Secret) Format(f fmt.State, _ rune) { _, _ = fmt.Fprintf(f, "secret %s", s.Name) }

// MarshalJSON shows the name alone.
func (s Secret) MarshalJSON() ([]byte, error) { return fmt.Appendf(nil, "%q", s.Name), nil }
