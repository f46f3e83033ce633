package region

import "github.com/weir-dev/weir/pkg/policy"

// A place is where a budget is kept, or what this cluster was granted of it: a hub, a
// store, or neither for this process. Places that are equal are one, and share their
// connections.
type place struct {
	hub   policy.Hub
	store policy.Store
}

// ledgerOf returns where the budget is kept.
func ledgerOf(b *policy.FederatedBudget) place {
	switch {
	case b.Hub != nil:
		return place{hub: *b.Hub}
	case b.Coordinator.Type == policy.ControllerStore:
		return place{}
	default:
		return place{store: b.Coordinator}
	}
}

// escrowOf returns where the cluster keeps what it was granted of the budget.
func escrowOf(b *policy.FederatedBudget) place {
	if b.Escrow.Type == policy.ControllerStore {
		return place{}
	}
	return place{store: b.Escrow}
}

// own reports whether the place is this process.
func (p place) own() bool { return p == place{} }

// anyVersion returns the place whatever the version of its credentials.
func (p place) anyVersion() place {
	p.hub.SecretVersion, p.store.SecretVersion = "", ""
	return p
}

// credentials returns a store that names the Secret of the place.
func (p place) credentials() policy.Store {
	if p.hub.Endpoint != "" {
		return policy.Store{Secret: p.hub.Secret, SecretVersion: p.hub.SecretVersion}
	}
	return p.store
}

// String returns the place as users see it.
func (p place) String() string {
	switch {
	case p.hub.Endpoint != "":
		return "the hub at " + p.hub.Endpoint
	case p.own():
		return "this controller"
	default:
		return p.store.Name()
	}
}
