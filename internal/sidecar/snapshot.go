package sidecar

import (
	"fmt"

	"github.com/weir-dev/weir/pkg/policy"
	"github.com/weir-dev/weir/pkg/policy/revision"
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
	if err == nil {
		err = p.adoptWhole(policy.Version(data), data)
	}
	refused := p.Refused()
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

// adoptWhole puts an encoded snapshot in force, or leaves all as it is. For a part that is
// refused, the last good version stays. So do the keys of tokens that the controller has not
// read, as when it has just begun to lead.
func (p *process) adoptWhole(version string, data []byte) error {
	next, err := p.held.Load().Whole(version, data)
	if err != nil {
		return err
	}
	return p.adopt(next)
}

// adopt puts what is held next in force, or leaves all as it is.
func (p *process) adopt(next *revision.Held) error {
	pool, err := p.pools.Prepare(next.Set)
	if err != nil {
		return err
	}
	if err := p.enforcer.Apply(next.Set, next.Version); err != nil {
		pool.Abandon()
		return err
	}
	pool.Commit()
	p.held.Store(next)
	return nil
}
