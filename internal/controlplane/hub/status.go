package hub

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"strings"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/weir-dev/weir/internal/federationpb"
	"github.com/weir-dev/weir/pkg/store"
)

// refuse returns the status of a refusal.
func refuse(code codes.Code, reason federationpb.Refusal_Reason, format string, args ...any) error {
	plain := status.Newf(code, format, args...)
	detailed, err := plain.WithDetails(&federationpb.Refusal{Reason: reason})
	if err != nil {
		return plain.Err()
	}
	return detailed.Err()
}

// reasonOf returns the reason in a status, and REASON_UNSPECIFIED when there is none.
func reasonOf(err error) federationpb.Refusal_Reason {
	s, _ := status.FromError(err)
	for _, detail := range s.Details() {
		if refusal, ok := detail.(*federationpb.Refusal); ok {
			return refusal.GetReason()
		}
	}
	return federationpb.Refusal_REASON_UNSPECIFIED
}

// refusals are those that last until somebody changes something.
var refusals = map[federationpb.Refusal_Reason]Reason{
	federationpb.Refusal_REASON_UNAUTHORIZED:   Unauthorized,
	federationpb.Refusal_REASON_EXPIRED:        CertificateExpired,
	federationpb.Refusal_REASON_UNKNOWN_BUDGET: UnknownBudget,
	federationpb.Refusal_REASON_UNKNOWN_MEMBER: UnknownMember,
	federationpb.Refusal_REASON_MISMATCHED:     Mismatched,
	federationpb.Refusal_REASON_INVALID:        Invalid,
}

// typed returns the error of a call as users of a Client see it.
func (c *connection) typed(err error) error {
	s, _ := status.FromError(err)
	refused := &RefusedError{Endpoint: c.endpoint, Cause: errors.New(s.Message())}
	if reason, ok := refusals[reasonOf(err)]; ok {
		refused.Reason, refused.Message = reason, c.cure(reason)
		return refused
	}
	switch s.Code() {
	case codes.Unavailable, codes.DeadlineExceeded, codes.Canceled, codes.ResourceExhausted:
		if refused := c.refused(); refused != nil {
			return refused
		}
		return &store.UnavailableError{Store: "hub " + c.endpoint, Cause: c.away(err)}
	case codes.Unimplemented, codes.InvalidArgument:
		refused.Reason, refused.Message = Invalid, c.cure(Invalid)
		return refused
	default:
		return fmt.Errorf("hub %s: %w", c.endpoint, &store.Failure{
			Why: "it does not answer as a hub does: let spec.hub.endpoint name the federation port of a controller of Weir", Cause: err,
		})
	}
}

// cure says what a refusal means, and what to do, by its reason alone.
func (c *connection) cure(r Reason) string {
	switch r {
	case CertificateExpired:
		return expired(c.member(), c.certificate.Leaf)
	case UnknownBudget:
		return "it keeps no budget of this id: apply a FederatedBudget with that spec.id, and without spec.hub, to the hub's cluster"
	case UnknownMember:
		return fmt.Sprintf("its budget does not list member %q: add it to spec.members of the hub's FederatedBudget", c.member())
	case Mismatched:
		return "its budget has windows of another length or other additional rates, or only one of both has a key: give both objects the same spec.rate.window, spec.additionalRates and spec.key"
	case Invalid:
		return "it does not understand what it is sent: let spec.hub.endpoint name the federation port of a controller of Weir, of the same version"
	default:
		return fmt.Sprintf("it does not accept the certificate and the token of member %[1]q: %[2]s, and run the controller with --cluster-name=%[1]s",
			c.member(), copySecret(c.member()))
	}
}

// away returns why the hub did not answer a call.
func (c *connection) away(err error) *store.Failure {
	s, _ := status.FromError(err)
	out := &store.Failure{Cause: errors.New(s.Message())}
	failed := c.outcome.failed.Load()
	switch {
	case reasonOf(err) == federationpb.Refusal_REASON_NOT_LEADING:
		out.Why = "the controller that answers does not lead: let spec.hub.endpoint lead to the Service weir-hub"
	case reasonOf(err) == federationpb.Refusal_REASON_UNAVAILABLE:
		out.Why = "it cannot use what it keeps the budget in: see the log of the hub's controller"
	case failed != nil:
		out.Why = unreached(*failed)
	case s.Code() == codes.DeadlineExceeded:
		out.Why = "it did not answer in time: see that it runs, and that nothing between drops the connection, such as a network policy"
	case s.Code() == codes.Canceled:
		out.Why = "the call was given up"
	case strings.Contains(s.Message(), "lookup"), strings.Contains(s.Message(), "zero addresses"): // gRPC has no type for it
		out.Why = "its name cannot be resolved: see that spec.hub.endpoint is written right, and that the host is there"
	default:
		out.Why = "it closed the connection: see that spec.hub.endpoint names the federation port of a controller of Weir"
	}
	return out
}

// unreached says why a connection could not be made.
func unreached(err error) string {
	if _, plain := errors.AsType[tls.RecordHeaderError](err); plain {
		return "it does not speak TLS: let spec.hub.endpoint name the federation port of a controller of Weir"
	}
	if f := store.Unreached(err); f != nil {
		return f.Why
	}
	return "it does not answer as a hub does: let spec.hub.endpoint name the federation port of a controller of Weir"
}

// expired says that a member's certificate has ended, and the cure.
func expired(member string, certificate *x509.Certificate) string {
	return fmt.Sprintf("the certificate of member %q ended at %s: %s",
		member, certificate.NotAfter.UTC().Format(time.RFC3339), copySecret(member))
}

func copySecret(member string) string {
	return fmt.Sprintf("copy Secret %s%s again from the namespace of the hub's controller", MemberPrefix, member)
}
