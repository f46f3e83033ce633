package middleware

import (
	"context"
	"errors"
	"strconv"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/weir-dev/weir/internal/sidecar/problem"
)

// A Call is a call of a gRPC service. Its metadata is in the context.
type Call struct {
	Method  string // /package.Service/Method
	Message any    // the request of a unary call; nil for a stream
}

// UnaryServerInterceptor returns an interceptor that passes on the calls that all limits admit.
// Others fail with ResourceExhausted when they are over a limit, or Unavailable, with the details
// ErrorInfo, RetryInfo and QuotaFailure.
func UnaryServerInterceptor(limits ...Limit[Call]) grpc.UnaryServerInterceptor {
	return func(ctx context.Context, message any, info *grpc.UnaryServerInfo, handler grpc.UnaryHandler) (any, error) {
		if err := admitCall(ctx, Call{info.FullMethod, message}, limits); err != nil {
			return nil, err
		}
		return handler(ctx, message)
	}
}

// StreamServerInterceptor does the same with streams. A stream is charged once, when it begins.
func StreamServerInterceptor(limits ...Limit[Call]) grpc.StreamServerInterceptor {
	return func(server any, stream grpc.ServerStream, info *grpc.StreamServerInfo, handler grpc.StreamHandler) error {
		if err := admitCall(stream.Context(), Call{Method: info.FullMethod}, limits); err != nil {
			return err
		}
		return handler(server, stream)
	}
}

func admitCall(ctx context.Context, call Call, limits []Limit[Call]) error {
	made, err := admit(ctx, call, limits)
	switch refusal := made.refusal(); {
	case errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled):
		return status.FromContextError(err).Err()
	case err != nil:
		return status.Error(codes.Internal, "the rate limiter failed")
	case refusal != nil:
		retryAfter := ""
		if d := refusal.comeBack(); d > 0 {
			retryAfter = strconv.FormatInt(problem.Seconds(d), 10)
		}
		return status.FromProto(refusal.problem().RPC(retryAfter)).Err()
	default:
		return nil
	}
}
