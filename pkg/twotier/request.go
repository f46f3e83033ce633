package twotier

// A Request asks for units of one counter.
type Request struct {
	// Value names the counter; "" is the limit's single counter.
	Value string
	// Tenant is the tenant that is charged, by store.HashValue of its name, where
	// Config.Params.Fairness splits the limit; "" otherwise. Credits are leased for
	// each pair of value and tenant.
	Tenant string
	Cost   int64 // units, at least 1
}
