package hub

import (
	"crypto/x509"
	"errors"
	"fmt"
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
	if reason, ok := refusals[reasonOf(err)]; ok {
		return &RefusedError{Endpoint: c.endpoint, Reason: reason, Message: s.Message()}
	}
	switch s.Code() {
	case codes.Unavailable, codes.DeadlineExceeded, codes.Canceled, codes.ResourceExhausted:
		if refused := c.refused(); refused != nil {
			return refused
		}
		return &store.UnavailableError{Store: "hub " + c.endpoint, Cause: errors.New(s.Message())}
	case codes.Unimplemented, codes.InvalidArgument:
		return &RefusedError{Endpoint: c.endpoint, Reason: Invalid, Message: fmt.Sprintf(
			"%s: let spec.hub.endpoint name the federation port of a controller of Weir, of the same version", s.Message())}
	default:
		return fmt.Errorf("hub %s: %w", c.endpoint, err)
	}
}

// expired says that a member's certificate has ended, and the cure.
func expired(member string, certificate *x509.Certificate) string {
	return fmt.Sprintf("the certificate of member %q ended at %s: %s",
		member, certificate.NotAfter.UTC().Format(time.RFC3339), copySecret(member))
}

func copySecret(member string) string {
	return fmt.Sprintf("copy Secret %s%s again from the namespace of the hub's controller", MemberPrefix, member)
}
