package stores

import (
	"fmt"

	"github.com/weir-dev/weir/pkg/policy"
)

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

// nameOf returns the store as users see it.
func nameOf(s policy.Store) string {
	switch s.Type {
	case policy.RedisStore:
		return "redis at " + s.Address
	case policy.PostgresStore:
		return "postgres at " + s.Address
	default:
		return "controller"
	}
}
