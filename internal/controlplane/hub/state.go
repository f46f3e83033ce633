package hub

import (
	"errors"

	"github.com/weir-dev/weir/internal/federationpb"
	"github.com/weir-dev/weir/pkg/federation/ledger"
	"github.com/weir-dev/weir/pkg/limiter"
)

func stateTo(s ledger.State) *federationpb.State {
	out := &federationpb.State{
		WindowMicros: int64(s.Window), Index: s.Index, Term: s.Term, Limit: s.Limit, LatestMicros: int64(s.Latest),
		Before: s.Before, Reserved: s.Reserved,
	}
	for _, a := range s.Accounts {
		out.Accounts = append(out.Accounts, &federationpb.Account{Member: a.Member, Holder: a.Holder, Seq: a.Seq, Granted: a.Granted})
	}
	for _, a := range s.Standings {
		out.Standings = append(out.Standings, &federationpb.Standing{
			Member: a.Member, SeenMicros: int64(a.Seen), Weight: a.Weight, Tenants: tenantsTo(a.Tenants),
			Demand: a.Demand, Before: a.Before, Slice: a.Slice, Next: a.Next, Told: a.Told,
		})
	}
	for _, c := range s.Closed {
		closed := &federationpb.Closed{Index: c.Index, Limit: c.Limit, Granted: c.Granted}
		for _, u := range c.Usage {
			closed.Usage = append(closed.Usage, &federationpb.MemberUsage{
				Member: u.Member, Granted: u.Granted, Admitted: u.Admitted, Refused: u.Refused,
				Reported: u.Reported, Complete: u.Complete,
			})
		}
		out.Closed = append(out.Closed, closed)
	}
	return out
}

// stateFrom reads what is shown in status and decides nothing. Numbers that no ledger
// counts to are an error.
func stateFrom(in *federationpb.State) (ledger.State, error) {
	s := ledger.State{
		Window: limiter.Micros(in.GetWindowMicros()), Index: in.GetIndex(), Term: in.GetTerm(), Limit: in.GetLimit(),
		Latest: limiter.Instant(in.GetLatestMicros()), Before: in.GetBefore(), Reserved: in.GetReserved(),
	}
	for _, a := range in.GetAccounts() {
		s.Accounts = append(s.Accounts, ledger.Account{Member: a.GetMember(), Holder: a.GetHolder(), Seq: a.GetSeq(), Granted: a.GetGranted()})
	}
	for _, a := range in.GetStandings() {
		s.Standings = append(s.Standings, ledger.Standing{
			Member: a.GetMember(), Seen: limiter.Instant(a.GetSeenMicros()), Weight: a.GetWeight(), Tenants: tenantsFrom(a.GetTenants()),
			Demand: a.GetDemand(), Before: a.GetBefore(), Slice: a.GetSlice(), Next: a.GetNext(), Told: a.GetTold(),
		})
	}
	for _, c := range in.GetClosed() {
		closed := ledger.Closed{Index: c.GetIndex(), Limit: c.GetLimit(), Granted: c.GetGranted()}
		for _, u := range c.GetUsage() {
			closed.Usage = append(closed.Usage, ledger.MemberUsage{
				Member: u.GetMember(), Granted: u.GetGranted(), Admitted: u.GetAdmitted(), Refused: u.GetRefused(),
				Reported: u.GetReported(), Complete: u.GetComplete(),
			})
		}
		s.Closed = append(s.Closed, closed)
	}
	return s, checkState(s)
}

func checkState(s ledger.State) error {
	errs := []error{counts(int64(s.Window), s.Index, s.Term, s.Limit, int64(s.Latest), s.Before, s.Reserved)}
	for _, a := range s.Accounts {
		errs = append(errs, counts(a.Seq, a.Granted))
	}
	for _, a := range s.Standings {
		errs = append(errs, counts(int64(a.Seen), a.Weight, a.Tenants.Met, a.Tenants.Unmet, a.Demand, a.Before, a.Slice, a.Next, a.Told))
	}
	for _, c := range s.Closed {
		errs = append(errs, counts(c.Index, c.Limit, c.Granted))
		for _, u := range c.Usage {
			errs = append(errs, counts(u.Granted, u.Admitted, u.Refused))
		}
	}
	return errors.Join(errs...)
}
