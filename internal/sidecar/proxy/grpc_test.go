package proxy_test

import (
	"context"
	"net"
	"testing"
	"time"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/health"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"github.com/weir-dev/weir/internal/sidecar/enforce"
	"github.com/weir-dev/weir/pkg/limiter"
	"github.com/weir-dev/weir/pkg/twotier"
)

// newHealth serves gRPC and returns its address.
func newHealth(t *testing.T) (address string, app *health.Server) {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	server := grpc.NewServer()
	app = health.NewServer()
	healthpb.RegisterHealthServer(server, app)
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = server.Serve(listener)
	}()
	t.Cleanup(func() {
		server.Stop()
		<-done
	})
	return listener.Addr().String(), app
}

func healthClient(t *testing.T, address string) healthpb.HealthClient {
	t.Helper()
	conn, err := grpc.NewClient("passthrough:///"+address, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	return healthpb.NewHealthClient(conn)
}

// detail returns the detail of that type of a status, nil when it has none.
func detail[D proto.Message](err error) (none D) {
	for _, d := range status.Convert(err).Details() {
		if found, ok := d.(D); ok {
			return found
		}
	}
	return none
}

func TestGRPCPasses(t *testing.T) {
	app, server := newHealth(t)
	c := healthClient(t, inFront(t, app, admit))
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	if res, err := c.Check(ctx, new(healthpb.HealthCheckRequest)); err != nil || res.GetStatus() != healthpb.HealthCheckResponse_SERVING {
		t.Errorf("got %v, %v", res, err)
	}
	if _, err := c.Check(ctx, &healthpb.HealthCheckRequest{Service: "none"}); status.Code(err) != codes.NotFound {
		t.Errorf("the app's own status did not pass: %v", err)
	}
	watch, err := c.Watch(ctx, new(healthpb.HealthCheckRequest))
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []healthpb.HealthCheckResponse_ServingStatus{
		healthpb.HealthCheckResponse_SERVING, healthpb.HealthCheckResponse_NOT_SERVING,
	} {
		res, err := watch.Recv()
		if err != nil || res.GetStatus() != want {
			t.Fatalf("got %v, %v; want %v", res, err, want)
		}
		server.SetServingStatus("", healthpb.HealthCheckResponse_NOT_SERVING)
	}
	cancel()
	_, _ = watch.Recv()
}

func TestGRPCRefusals(t *testing.T) {
	rate := limiter.Rate{Limit: 5, Window: limiter.Second}
	for name, tc := range map[string]struct {
		cause  enforce.Cause
		want   codes.Code
		reason string
	}{
		"the limit is reached":  {enforce.QuotaExceeded, codes.ResourceExhausted, "QUOTA_EXCEEDED"},
		"the store is away":     {enforce.StoreUnavailable, codes.Unavailable, "STORE_UNAVAILABLE"},
		"the cost is too large": {enforce.CostTooLarge, codes.InvalidArgument, "COST_TOO_LARGE"},
		"the store is changing": {enforce.StoreDraining, codes.Unavailable, "STORE_DRAINING"},
		"the key is missing":    {enforce.KeyMissing, codes.InvalidArgument, "KEY_MISSING"},
	} {
		t.Run(name, func(t *testing.T) {
			app, _ := newHealth(t)
			c := healthClient(t, inFront(t, app, refusal(tc.cause, twotier.Decision{Limit: 5, RetryAfter: time.Second}, rate)))
			ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
			defer cancel()
			_, err := c.Check(ctx, new(healthpb.HealthCheckRequest))
			if status.Code(err) != tc.want || status.Convert(err).Message() == "" {
				t.Errorf("got %v, want %v", err, tc.want)
			}
			if got := detail[*errdetails.ErrorInfo](err).GetReason(); got != tc.reason {
				t.Errorf("the reason is %q, want %q", got, tc.reason)
			}
		})
	}
}
