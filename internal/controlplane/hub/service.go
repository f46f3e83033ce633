package hub

import (
	"context"
	"errors"
	"slices"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/weir-dev/weir/internal/federationpb"
	"github.com/weir-dev/weir/pkg/federation/ledger"
	"github.com/weir-dev/weir/pkg/store"
)

// A service answers members. The interceptor has authenticated the caller.
type service struct {
	federationpb.UnimplementedFederationServer
	*Server
}

// intercept lets a call through when this process leads and the caller proved who it is,
// bounds its time, and counts it.
func (s *Server) intercept(ctx context.Context, req any, info *grpc.UnaryServerInfo, handle grpc.UnaryHandler) (any, error) {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	answer, err := s.admit(ctx, req, handle)
	s.metrics.calls.WithLabelValues(info.FullMethod, reasonOf(err).String()).Inc()
	return answer, err
}

func (s *Server) admit(ctx context.Context, req any, handle grpc.UnaryHandler) (any, error) {
	if s.Leadership != nil && !s.Leadership.Held() {
		return nil, refuse(codes.Unavailable, federationpb.Refusal_REASON_NOT_LEADING, "this controller does not lead the hub")
	}
	member, err := s.authenticate(ctx)
	if err != nil {
		return nil, err
	}
	return handle(context.WithValue(ctx, memberKey{}, member), req)
}

// Apply implements federationpb.FederationServer.
func (s *service) Apply(ctx context.Context, in *federationpb.ApplyRequest) (*federationpb.Grant, error) {
	c, err := commandFrom(in.GetCommand())
	if err != nil {
		return nil, refuse(codes.InvalidArgument, federationpb.Refusal_REASON_INVALID, "the command is not one that a member sends: %v", err)
	}
	if member := memberOf(ctx); c.Member != member {
		return nil, refuse(codes.PermissionDenied, federationpb.Refusal_REASON_UNAUTHORIZED,
			"the command speaks for member %q, but the certificate is of member %q: run the controller with --cluster-name=%s, or give it the Secret of its own member",
			c.Member, member, member)
	}
	p, err := s.budget(ctx, in.GetBudget())
	if err != nil {
		return nil, err
	}
	if in.GetWindowMicros() != int64(p.Window) {
		return nil, refuse(codes.FailedPrecondition, federationpb.Refusal_REASON_MISMATCHED,
			"the member has windows of %dµs, the hub of %dµs: give both objects the same spec.rate.window", in.GetWindowMicros(), p.Window)
	}
	g, err := s.Coordinator.Apply(ctx, in.GetBudget(), p, c)
	if err != nil {
		return nil, failed(err)
	}
	return grantTo(g), nil
}

// Observe implements federationpb.FederationServer.
func (s *service) Observe(ctx context.Context, in *federationpb.ObserveRequest) (*federationpb.State, error) {
	if _, err := s.budget(ctx, in.GetBudget()); err != nil {
		return nil, err
	}
	state, err := s.Coordinator.Observe(ctx, in.GetBudget())
	if err != nil {
		return nil, failed(err)
	}
	return stateTo(state), nil
}

// budget returns the parameters of a budget that lists the member that asks.
func (s *service) budget(ctx context.Context, id string) (ledger.Params, error) {
	if n := len(id); n == 0 || n > maxName {
		return ledger.Params{}, refuse(codes.InvalidArgument, federationpb.Refusal_REASON_INVALID, "the budget's id has %d bytes, must be 1 to %d", n, maxName)
	}
	p, ok := s.Budgets.Budget(id)
	if !ok {
		return p, refuse(codes.NotFound, federationpb.Refusal_REASON_UNKNOWN_BUDGET,
			"the hub keeps no budget %q: apply a FederatedBudget with that spec.id, and without spec.hub, to the hub's cluster", id)
	}
	member := memberOf(ctx)
	if !slices.ContainsFunc(p.Members, func(m ledger.Member) bool { return m.Name == member }) {
		return p, refuse(codes.PermissionDenied, federationpb.Refusal_REASON_UNKNOWN_MEMBER,
			"budget %q does not list member %q: add it to spec.members of the hub's FederatedBudget", id, member)
	}
	return p, nil
}

// failed returns the status of a coordinator's error.
func failed(err error) error {
	if unavailable := (*store.UnavailableError)(nil); errors.As(err, &unavailable) {
		return refuse(codes.Unavailable, federationpb.Refusal_REASON_UNAVAILABLE, "%v", err)
	}
	return status.Error(codes.Internal, err.Error())
}
