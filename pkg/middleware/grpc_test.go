package middleware_test

import (
	"context"
	"net"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/health"
	"google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/grpc/test/bufconn"
	"google.golang.org/protobuf/testing/protocmp"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/weir-dev/weir/pkg/middleware"
	"github.com/weir-dev/weir/pkg/twotier"
)

type callLimit = middleware.Limit[middleware.Call]

// serve runs a health service behind limits, and returns a client.
func serve(t *testing.T, limits ...callLimit) grpc_health_v1.HealthClient {
	t.Helper()
	listener := bufconn.Listen(1 << 16)
	server := grpc.NewServer(
		grpc.UnaryInterceptor(middleware.UnaryServerInterceptor(limits...)),
		grpc.StreamInterceptor(middleware.StreamServerInterceptor(limits...)),
	)
	grpc_health_v1.RegisterHealthServer(server, health.NewServer())
	served := make(chan error, 1)
	go func() { served <- server.Serve(listener) }()
	conn, err := grpc.NewClient("passthrough:health", grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) { return listener.DialContext(ctx) }))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := conn.Close(); err != nil {
			t.Error(err)
		}
		server.Stop()
		if err := <-served; err != nil {
			t.Error(err)
		}
	})
	return grpc_health_v1.NewHealthClient(conn)
}

func check(ctx context.Context, c grpc_health_v1.HealthClient) error {
	_, err := c.Check(ctx, &grpc_health_v1.HealthCheckRequest{})
	return err
}

// watch opens a stream and ends it when it is served.
func watch(ctx context.Context, c grpc_health_v1.HealthClient) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	stream, err := c.Watch(ctx, &grpc_health_v1.HealthCheckRequest{})
	if err != nil {
		return err
	}
	_, err = stream.Recv()
	return err
}

func TestInterceptors(t *testing.T) {
	for name, call := range map[string]func(context.Context, grpc_health_v1.HealthClient) error{"unary": check, "stream": watch} {
		t.Run(name, func(t *testing.T) {
			client := serve(t, callLimit{Name: "all", Limiter: perMinute(t, 1)})
			if err := call(t.Context(), client); err != nil {
				t.Fatalf("the first call fails: %v", err)
			}
			err := call(t.Context(), client)
			if status.Code(err) != codes.ResourceExhausted {
				t.Fatalf("the second call returns %v, want ResourceExhausted", err)
			}
			want := []any{
				&errdetails.ErrorInfo{Reason: "RATE_LIMIT_EXCEEDED", Domain: "weir.dev"},
				&errdetails.RetryInfo{RetryDelay: durationpb.New(time.Minute)},
				&errdetails.QuotaFailure{Violations: []*errdetails.QuotaFailure_Violation{{Subject: "all", Description: `limit "all" is used up`}}},
			}
			if diff := cmp.Diff(want, status.Convert(err).Details(), protocmp.Transform()); diff != "" {
				t.Errorf("details (-want +got):\n%s", diff)
			}
		})
	}
}

func TestCallsOfAnUnavailableStore(t *testing.T) {
	if err := check(t.Context(), serve(t, callLimit{Name: "all", Limiter: over(t, away{}, 5, failing(twotier.Allow))})); err != nil {
		t.Errorf("with Allow a call fails: %v", err)
	}
	err := check(t.Context(), serve(t, callLimit{Name: "all", Limiter: over(t, away{}, 5, failing(twotier.Deny))}))
	if status.Code(err) != codes.Unavailable {
		t.Errorf("with Deny a call returns %v, want Unavailable", err)
	}
}

func TestACallIsChargedByItsMetadata(t *testing.T) {
	byTenant := func(ctx context.Context, call middleware.Call) (twotier.Request, bool) {
		md, _ := metadata.FromIncomingContext(ctx)
		tenant := md.Get("x-tenant")
		if len(tenant) != 1 || call.Method != grpc_health_v1.Health_Check_FullMethodName {
			return twotier.Request{}, false
		}
		return twotier.Request{Value: tenant[0], Cost: int64(len(call.Message.(*grpc_health_v1.HealthCheckRequest).GetService())) + 1}, true
	}
	client := serve(t, callLimit{Name: "tenants", Limiter: perMinute(t, 1), Request: byTenant})
	for i, tc := range []struct {
		tenant string
		want   codes.Code
	}{{"a", codes.OK}, {"a", codes.ResourceExhausted}, {"b", codes.OK}, {"", codes.OK}, {"", codes.OK}} {
		ctx := t.Context()
		if tc.tenant != "" {
			ctx = metadata.AppendToOutgoingContext(ctx, "x-tenant", tc.tenant)
		}
		if got := status.Code(check(ctx, client)); got != tc.want {
			t.Errorf("call %d of tenant %q returns %s, want %s", i, tc.tenant, got, tc.want)
		}
	}
}

func TestACallThatEndsBeforeItIsAdmitted(t *testing.T) {
	client := serve(t, callLimit{Name: "all", Limiter: perMinute(t, 60, leaky)})
	if err := check(t.Context(), client); err != nil {
		t.Fatal(err)
	}
	hurried, cancel := context.WithTimeout(t.Context(), 900*time.Millisecond)
	defer cancel()
	if err := check(hurried, client); status.Code(err) != codes.DeadlineExceeded {
		t.Errorf("a call that would be delayed beyond its deadline returns %v, want DeadlineExceeded", err)
	}
}
