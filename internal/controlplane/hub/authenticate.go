package hub

import (
	"context"
	"crypto/x509"
	"strings"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/peer"

	"github.com/weir-dev/weir/internal/federationpb"
)

// memberKey is the key of the context value that holds the calling member.
type memberKey struct{}

// memberOf returns the name that the caller has proved.
func memberOf(ctx context.Context) string {
	name, _ := ctx.Value(memberKey{}).(string)
	return name
}

// authenticate returns the member that the certificate of the connection and the token
// of the call both prove; its error is a status. The certificate is looked at again: a
// connection may outlive it.
func (s *Server) authenticate(ctx context.Context) (string, error) {
	from, ok := peer.FromContext(ctx)
	if !ok {
		return "", refuse(codes.Unauthenticated, federationpb.Refusal_REASON_UNAUTHORIZED, "no connection")
	}
	certificate := certificateOf(from.AuthInfo)
	member := certificate.Subject.CommonName
	if now := s.Credentials.config.Clock.Now(); now.After(certificate.NotAfter) {
		return "", refuse(codes.Unauthenticated, federationpb.Refusal_REASON_EXPIRED, "%s", expired(member, certificate))
	}
	token, ok := bearer(ctx)
	if !ok {
		return "", refuse(codes.Unauthenticated, federationpb.Refusal_REASON_UNAUTHORIZED,
			"the call carries no token: %s", copySecret(member))
	}
	good, err := s.Credentials.keys.accepts(ctx, member, token)
	if err != nil {
		return "", refuse(codes.Unavailable, federationpb.Refusal_REASON_UNAVAILABLE, "the token cannot be checked now: %v", err)
	}
	if !good {
		return "", refuse(codes.Unauthenticated, federationpb.Refusal_REASON_UNAUTHORIZED,
			"the token is not the present one of member %q: %s", member, copySecret(member))
	}
	s.Credentials.used(member)
	return member, nil
}

// certificateOf returns the certificate that a connection was accepted for; an empty one,
// which proves nothing, when it was accepted otherwise.
func certificateOf(info credentials.AuthInfo) *x509.Certificate {
	if t, ok := info.(credentials.TLSInfo); ok && len(t.State.VerifiedChains) > 0 {
		return t.State.VerifiedChains[0][0]
	}
	return &x509.Certificate{}
}

func bearer(ctx context.Context) (string, bool) {
	md, _ := metadata.FromIncomingContext(ctx)
	values := md.Get("authorization")
	if len(values) != 1 {
		return "", false
	}
	scheme, token, _ := strings.Cut(values[0], " ")
	return token, strings.EqualFold(scheme, "bearer") && token != ""
}
