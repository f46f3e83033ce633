package sidecar

import (
	"fmt"

	"github.com/weir-dev/weir/pkg/policy"
)

// begin puts the snapshot in force that the pod was created with. One that this sidecar
// does not understand, as when it is older than the controller that wrote it, keeps
// nothing from starting. The pod's app waits for the sidecar, and the controller is
// asked anyway. Without a controller there would be none to ask, so the error stands.
//
// Until the controller answers, what was not understood is not enforced, as if the pod
// had been created without it. That goes for a policy that refuses while its store is
// away, too: what it says of its store it says of a policy in force, and which requests
// are its own is just what is not understood. To refuse them all would refuse some that
// it never meant.
func (p *process) begin() error {
	if p.cfg.snapshot == "" {
		return nil
	}
	data, err := policy.Unpack(p.cfg.snapshot)
	var refused policy.Refusals
	if err == nil {
		refused, err = p.adopt(data)
	}
	switch {
	case err != nil && p.fleet == nil:
		return fmt.Errorf("WEIR_SNAPSHOT: %w: write it with the control plane of the same version, or set --fleet-address", err)
	case err != nil:
		p.log.Error("WEIR_SNAPSHOT is not understood; starting without policies until the controller sends them", "error", err)
	case len(refused) > 0 && p.fleet == nil:
		return fmt.Errorf("WEIR_SNAPSHOT: %w, or set --fleet-address", refused)
	case len(refused) > 0:
		p.log.Error("a part of WEIR_SNAPSHOT is not understood; starting without it until the controller sends it", "error", refused)
	}
	return nil
}

// adopt puts an encoded snapshot in force, or leaves all as it is. For a part that is
// refused, the last good version stays. So do the keys of tokens that the controller has not
// read, as when it has just begun to lead.
func (p *process) adopt(data []byte) (policy.Refusals, error) {
	snapshot, refused, err := policy.DecodeParts(data)
	if err != nil {
		return nil, err
	}
	before, _ := p.enforcer.Set()
	snapshot.Keep(&before.Snapshot, refused)
	snapshot.KeepKeys(&before.Snapshot)
	set, err := policy.Compile(snapshot)
	if err != nil {
		return nil, err
	}
	pool, err := p.pools.Prepare(set)
	if err != nil {
		return nil, err
	}
	if err := p.enforcer.Apply(set, policy.Version(data)); err != nil {
		pool.Abandon()
		return nil, err
	}
	pool.Commit()
	p.refused.Store(&refused)
	return refused, nil
}
