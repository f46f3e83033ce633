package hub

import (
	"context"
	"errors"
	"slices"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/weir-dev/weir/internal/federationpb"
	"github.com/weir-dev/weir/pkg/federation/keys"
	"github.com/weir-dev/weir/pkg/federation/ledger"
	"github.com/weir-dev/weir/pkg/store"
)

// Coordinator is what the server needs of the coordinator of the budgets: a
// federation.Coordinator and a keyed.Coordinator, which a Client is as well.
type Coordinator interface {
	Apply(ctx context.Context, id string, p ledger.Params, c ledger.Command) (ledger.Grant, error)
	ApplyKeys(ctx context.Context, id string, p ledger.Params, r keys.Request) (keys.Reply, error)
	Observe(ctx context.Context, id string) (ledger.State, error)
}

// Budgets knows what this hub keeps. Its methods are called often and by several
// goroutines; they do not block, and the caller does not change what they return.
type Budgets interface {
	// Budget returns what the budget of that id is divided by, and false when this hub
	// does not keep it.
	Budget(id string) (ledger.Params, bool)
	// Members returns the names of all members of all budgets that this hub keeps, each
	// once or more often. The hub's own may be among them.
	Members() []string
	// Credentialed returns the names of those that have a Secret in the controller's namespace,
	// each once: a bounded number, whatever budgets name. The hub's own is not among them.
	Credentialed() []string
}

// Leadership is what the lock of leader election knows.
type Leadership interface {
	// Held reports whether this process is certain to lead still.
	Held() bool
}

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
	if err := matches(p, in, p.Keys > 0 && c.Op != ledger.Lease); err != nil {
		return nil, err
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
