package hub

import (
	"fmt"

	"github.com/weir-dev/weir/internal/federationpb"
	"github.com/weir-dev/weir/pkg/federation/ledger"
	"github.com/weir-dev/weir/pkg/limiter"
)

// reasons of grants as they are sent. Unreserved is the coordinator's own.
var reasons = map[ledger.Reason]federationpb.Grant_Reason{
	ledger.Granted:    federationpb.Grant_REASON_GRANTED,
	ledger.Exhausted:  federationpb.Grant_REASON_EXHAUSTED,
	ledger.Kept:       federationpb.Grant_REASON_KEPT,
	ledger.Stale:      federationpb.Grant_REASON_STALE,
	ledger.Amnesia:    federationpb.Grant_REASON_AMNESIA,
	ledger.Behind:     federationpb.Grant_REASON_BEHIND,
	ledger.Unknown:    federationpb.Grant_REASON_UNKNOWN,
	ledger.Crowded:    federationpb.Grant_REASON_CROWDED,
	ledger.Mismatched: federationpb.Grant_REASON_MISMATCHED,
	ledger.Forfeited:  federationpb.Grant_REASON_FORFEITED,
}

func grantTo(g ledger.Grant) *federationpb.Grant {
	return &federationpb.Grant{
		Reason: reasons[g.Reason], Seq: g.Seq, Epoch: epochTo(g.Epoch), Granted: g.Granted,
		Slice: g.Slice, NowSlice: g.NowSlice, Limit: g.Limit, Remaining: g.Remaining,
		ExpiresInMicros: int64(g.ExpiresIn), RetryAfterMicros: int64(g.RetryAfter), NowMicros: int64(g.Now),
	}
}

// grantFrom reads an answer. An answer that no coordinator gives is an error, so that a hub
// of another version is noticed and not believed.
func grantFrom(in *federationpb.Grant) (ledger.Grant, error) {
	g := ledger.Grant{
		Seq: in.GetSeq(), Epoch: epochFrom(in.GetEpoch()), Granted: in.GetGranted(),
		Slice: in.GetSlice(), NowSlice: in.GetNowSlice(), Limit: in.GetLimit(), Remaining: in.GetRemaining(),
		ExpiresIn: limiter.Micros(in.GetExpiresInMicros()), RetryAfter: limiter.Micros(in.GetRetryAfterMicros()),
		Now: limiter.Instant(in.GetNowMicros()),
	}
	var ok bool
	if g.Reason, ok = reasonFrom(in.GetReason()); !ok {
		return g, fmt.Errorf("a grant for reason %d", in.GetReason())
	}
	return g, counts(g.Seq, g.Epoch.Index, g.Epoch.Term, g.Granted, g.Slice, g.NowSlice, g.Limit, g.Remaining,
		int64(g.ExpiresIn), int64(g.RetryAfter), int64(g.Now))
}

// counts reports a number that no ledger counts to.
func counts(values ...int64) error {
	for _, v := range values {
		if v < 0 || v > 1<<53 {
			return fmt.Errorf("a number of %d", v)
		}
	}
	return nil
}
