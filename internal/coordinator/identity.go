package coordinator

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/weir-dev/weir/internal/coordinator/podauth"
	"github.com/weir-dev/weir/internal/fleetpb"
)

// authenticate returns whose token the stream carries; its error is a status.
func (c *Coordinator) authenticate(ctx context.Context) (podauth.Identity, error) {
	token, ok := bearer(ctx)
	if !ok {
		c.metrics.authentications.WithLabelValues("missing").Inc()
		return podauth.Identity{}, status.Error(codes.Unauthenticated, "no bearer token in the authorization metadata")
	}
	ctx, cancel := context.WithTimeout(ctx, authenticateTimeout)
	defer cancel()
	id, err := c.Authenticator.Authenticate(ctx, token)
	switch {
	case errors.Is(err, podauth.ErrUnauthenticated):
		c.metrics.authentications.WithLabelValues("refused").Inc()
		return podauth.Identity{}, status.Error(codes.Unauthenticated, err.Error())
	case errors.Is(err, podauth.ErrCrowded):
		c.metrics.authentications.WithLabelValues("limited").Inc()
		return podauth.Identity{}, status.Error(codes.ResourceExhausted, err.Error())
	case err != nil:
		c.metrics.authentications.WithLabelValues("failed").Inc()
		return podauth.Identity{}, status.Errorf(codes.Unavailable, "the token cannot be reviewed now: %v", err)
	}
	c.metrics.authentications.WithLabelValues("accepted").Inc()
	return id, nil
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

// checkHello reports what in hello contradicts the identity, as a status.
func checkHello(hello *fleetpb.Hello, id podauth.Identity) error {
	for _, claim := range []struct{ what, said, proved string }{
		{"namespace", hello.GetNamespace(), id.Namespace},
		{"pod", hello.GetPod(), id.Pod},
		{"pod UID", hello.GetPodUid(), id.PodUID},
	} {
		if claim.said != claim.proved {
			return status.Error(codes.PermissionDenied,
				fmt.Sprintf("hello names %s %q, but the token belongs to %q", claim.what, shortened(claim.said, maxErrorText), claim.proved))
		}
	}
	if n := len(hello.GetBootNonce()); n == 0 || n > maxNonce {
		return status.Errorf(codes.InvalidArgument, "hello has a boot nonce of %d bytes, must be 1 to %d", n, maxNonce)
	}
	for _, version := range []struct{ what, said string }{
		{"version", hello.GetVersion()},
		{"config version", hello.GetConfigVersion()},
	} {
		if n := len(version.said); n > maxVersion {
			return status.Errorf(codes.InvalidArgument, "hello has a %s of %d bytes, must be at most %d", version.what, n, maxVersion)
		}
	}
	return nil
}
