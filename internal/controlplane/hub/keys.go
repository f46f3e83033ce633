package hub

import (
	"context"
	"fmt"
	"slices"

	"google.golang.org/grpc/codes"

	"github.com/weir-dev/weir/internal/federationpb"
	"github.com/weir-dev/weir/pkg/federation/keys"
	"github.com/weir-dev/weir/pkg/federation/ledger"
	"github.com/weir-dev/weir/pkg/limiter"
)

// ApplyKeys implements federationpb.FederationServer.
func (s *service) ApplyKeys(ctx context.Context, in *federationpb.ApplyKeysRequest) (*federationpb.ApplyKeysResponse, error) {
	p, err := s.budget(ctx, in.GetBudget())
	if err != nil {
		return nil, err
	}
	if err := matches(p, in, true); err != nil {
		return nil, err
	}
	r := keysFrom(in)
	r.Member = memberOf(ctx)
	if err := r.Validate(); err != nil {
		return nil, refuse(codes.InvalidArgument, federationpb.Refusal_REASON_INVALID, "the request is not one that a member sends: %v", err)
	}
	reply, err := s.Coordinator.ApplyKeys(ctx, in.GetBudget(), p, r)
	if err != nil {
		return nil, failed(err)
	}
	return replyTo(reply), nil
}

// asKnown is how a member knows a budget.
type asKnown interface {
	GetWindowMicros() int64
	GetOtherWindowsMicros() []int64
}

// matches refuses a member that knows the budget with other windows, or with other rates beside it,
// or whose object alone has a key or has none.
func matches(p ledger.Params, as asKnown, keyed bool) error {
	switch window := as.GetWindowMicros(); {
	case window != int64(p.Window):
		return refuse(codes.FailedPrecondition, federationpb.Refusal_REASON_MISMATCHED,
			"the member has windows of %dµs, the hub of %dµs: give both objects the same spec.rate.window", window, p.Window)
	case !slices.Equal(as.GetOtherWindowsMicros(), microsTo(p.Others)):
		return refuse(codes.FailedPrecondition, federationpb.Refusal_REASON_MISMATCHED,
			"the member has further rates with windows of %v µs, the hub of %v µs: give both objects the same spec.additionalRates, and use a version of Weir in the member that knows them",
			as.GetOtherWindowsMicros(), p.Others)
	case keyed != (p.Keys > 0):
		return refuse(codes.FailedPrecondition, federationpb.Refusal_REASON_MISMATCHED,
			"only one of the member's object and the hub's has a key: give both the same spec.key")
	}
	return nil
}

// ApplyKeys implements keyed.Coordinator. The error is that of Apply.
func (c *Client) ApplyKeys(ctx context.Context, id string, p ledger.Params, r keys.Request) (keys.Reply, error) {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	request := keysTo(r)
	request.Budget, request.WindowMicros, request.OtherWindowsMicros = id, int64(p.Window), microsTo(p.Others)
	answer, err := c.calls.ApplyKeys(ctx, request)
	if err != nil {
		return keys.Reply{}, c.typed(err)
	}
	reply, err := replyFrom(answer)
	if err != nil {
		return keys.Reply{}, c.misunderstood(err)
	}
	return reply, nil
}

// microsTo returns lengths as they are sent.
func microsTo(lengths []limiter.Micros) []int64 {
	var out []int64
	for _, l := range lengths {
		out = append(out, int64(l))
	}
	return out
}

func keysTo(r keys.Request) *federationpb.ApplyKeysRequest {
	out := &federationpb.ApplyKeysRequest{Asks: make([]*federationpb.KeyAsk, len(r.Asks))}
	for i, a := range r.Asks {
		out.Asks[i] = &federationpb.KeyAsk{Hash: a.Hash, Min: a.Min, Want: a.Want}
	}
	return out
}

// keysFrom reads a request, which may not be valid.
func keysFrom(in *federationpb.ApplyKeysRequest) keys.Request {
	r := keys.Request{Asks: make([]keys.KeyAsk, len(in.GetAsks()))}
	for i, a := range in.GetAsks() {
		r.Asks[i] = keys.KeyAsk{Hash: a.GetHash(), Ask: keys.Ask{Min: a.GetMin(), Want: a.GetWant()}}
	}
	return r
}

func replyTo(r keys.Reply) *federationpb.ApplyKeysResponse {
	out := &federationpb.ApplyKeysResponse{
		Reason: reasons[r.Reason], Epoch: epochTo(r.Epoch), Limit: r.Limit,
		ExpiresInMicros: int64(r.ExpiresIn), RetryAfterMicros: int64(r.RetryAfter), NowMicros: int64(r.Now),
	}
	for _, g := range r.Grants {
		out.Grants = append(out.Grants, &federationpb.KeyGrant{Units: g.Units, Remaining: g.Remaining, Lacks: g.Lacks})
	}
	out.Room = &federationpb.KeyRoom{Counters: r.Room.Counters, Full: r.Room.Full}
	return out
}

// replyFrom reads an answer. One that no coordinator gives is an error, as of grantFrom.
func replyFrom(in *federationpb.ApplyKeysResponse) (keys.Reply, error) {
	r := keys.Reply{
		Epoch: epochFrom(in.GetEpoch()), Limit: in.GetLimit(),
		ExpiresIn: limiter.Micros(in.GetExpiresInMicros()), RetryAfter: limiter.Micros(in.GetRetryAfterMicros()),
		Now:  limiter.Instant(in.GetNowMicros()),
		Room: keys.Room{Counters: in.GetRoom().GetCounters(), Full: in.GetRoom().GetFull()},
	}
	var ok bool
	if r.Reason, ok = reasonFrom(in.GetReason()); !ok {
		return r, fmt.Errorf("keys are answered for reason %d", in.GetReason())
	}
	err := counts(r.Epoch.Index, r.Epoch.Term, r.Limit, int64(r.ExpiresIn), int64(r.RetryAfter), int64(r.Now), r.Room.Counters)
	for _, g := range in.GetGrants() {
		if err == nil {
			err = counts(g.GetUnits(), g.GetRemaining())
		}
		r.Grants = append(r.Grants, keys.Grant{Units: g.GetUnits(), Remaining: g.GetRemaining(), Lacks: g.GetLacks()})
	}
	return r, err
}

// reasonFrom returns the reason of an answer, and false for one that no coordinator gives.
func reasonFrom(in federationpb.Grant_Reason) (ledger.Reason, bool) {
	for reason, sent := range reasons {
		if sent == in {
			return reason, true
		}
	}
	return 0, false
}
