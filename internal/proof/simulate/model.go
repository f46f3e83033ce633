package simulate

// A Model says what the holders decide with.
type Model struct {
	Name  string
	start func(*node) holder
}

// AllOrNothing is two-tier limiting as it was published with ThrottleKit, to compare with.
// Each lease is for a fixed batch and is granted whole or not at all, and a refusal is not
// remembered. Credits die with their window, or carry over to the next ones. It knows the
// store's time exactly.
func AllOrNothing(name string, batch int64, carryOver bool) Model {
	return Model{Name: name, start: func(n *node) holder {
		return &allOrNothing{node: n, batch: batch, carryOver: carryOver}
	}}
}

// Static gives each holder an equal part of the limit, without a store.
func Static() Model {
	return Model{Name: "static", start: func(n *node) holder { return &static{node: n} }}
}
