package hub

import (
	"fmt"

	"github.com/weir-dev/weir/internal/federationpb"
	"github.com/weir-dev/weir/pkg/federation/ledger"
)

// maxName bounds names and ids on the wire, in bytes.
const maxName = 253

// commandTo returns c as it is sent. Reserve and Memory are the coordinator's own, and are
// never sent.
func commandTo(c ledger.Command) *federationpb.Command {
	out := &federationpb.Command{
		Op:     federationpb.Command_Op(c.Op),
		Member: c.Member, Holder: c.Holder, Seq: c.Seq,
		Epoch: epochTo(c.Epoch), Granted: c.Granted, Min: c.Min, Want: c.Want,
		Demand: c.Demand, Weight: c.Weight, Tenants: tenantsTo(c.Tenants), Slice: c.Slice,
	}
	for _, u := range c.Usage {
		out.Usage = append(out.Usage, &federationpb.Usage{Index: u.Index, Admitted: u.Admitted, Refused: u.Refused, Complete: u.Complete})
	}
	return out
}

// commandFrom reads a command that a member may send.
func commandFrom(in *federationpb.Command) (ledger.Command, error) {
	c := ledger.Command{
		Op:     ledger.Op(in.GetOp()),
		Member: in.GetMember(), Holder: in.GetHolder(), Seq: in.GetSeq(),
		Epoch: epochFrom(in.GetEpoch()), Granted: in.GetGranted(), Min: in.GetMin(), Want: in.GetWant(),
		Demand: in.GetDemand(), Weight: in.GetWeight(), Tenants: tenantsFrom(in.GetTenants()), Slice: in.GetSlice(),
	}
	switch in.GetOp() {
	case federationpb.Command_OP_LEASE, federationpb.Command_OP_RELEASE, federationpb.Command_OP_REPORT:
	default:
		return c, fmt.Errorf("op %d, want %d to %d", in.GetOp(), federationpb.Command_OP_LEASE, federationpb.Command_OP_REPORT)
	}
	if n := max(len(c.Member), len(c.Holder)); n > maxName {
		return c, fmt.Errorf("a name of %d bytes, at most %d are taken", n, maxName)
	}
	if n := len(in.GetUsage()); n > ledger.MaxClosed {
		return c, fmt.Errorf("usage of %d windows, at most %d are taken", n, ledger.MaxClosed)
	}
	for _, u := range in.GetUsage() {
		c.Usage = append(c.Usage, ledger.Usage{Index: u.GetIndex(), Admitted: u.GetAdmitted(), Refused: u.GetRefused(), Complete: u.GetComplete()})
	}
	checked := c
	checked.Memory.Term = 1 // the coordinator fills it in
	return c, checked.Validate()
}

func epochTo(e ledger.Epoch) *federationpb.Epoch {
	return &federationpb.Epoch{Index: e.Index, Term: e.Term}
}

func epochFrom(in *federationpb.Epoch) ledger.Epoch {
	return ledger.Epoch{Index: in.GetIndex(), Term: in.GetTerm()}
}

func tenantsTo(t ledger.Tenants) *federationpb.Tenants {
	if t == (ledger.Tenants{}) {
		return nil
	}
	return &federationpb.Tenants{Met: t.Met, Unmet: t.Unmet}
}

func tenantsFrom(in *federationpb.Tenants) ledger.Tenants {
	return ledger.Tenants{Met: in.GetMet(), Unmet: in.GetUnmet()}
}
