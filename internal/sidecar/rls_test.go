package sidecar

import (
	"net"
	"net/http"
	"strings"
	"testing"

	commonv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/common/ratelimit/v3"
	ratelimitv3 "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/weir-dev/weir/pkg/policy"
)

// askAsEnvoy calls the sidecar's rate limit service.
func askAsEnvoy(t *testing.T, s *sandbox) (ratelimitv3.RateLimitResponse_Code, error) {
	t.Helper()
	c, err := grpc.NewClient(net.JoinHostPort(s.ip, "15011"), grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	out, err := ratelimitv3.NewRateLimitServiceClient(c).ShouldRateLimit(t.Context(), &ratelimitv3.RateLimitRequest{
		Domain:      "checkout",
		Descriptors: []*commonv3.RateLimitDescriptor{{Entries: []*commonv3.RateLimitDescriptor_Entry{{Key: "user", Value: "ann"}}}},
	})
	return out.GetOverallCode(), err
}

// TestEnvoyIsAnsweredFromTheCountersOfRequests: calls and requests without the key of
// the limit share a counter.
func TestEnvoyIsAnsweredFromTheCountersOfRequests(t *testing.T) {
	s := newSandbox(t, http.HandlerFunc(hello))
	c := serveController(t, s)
	c.config.Snapshot, c.config.Version, _ = snapshotOf(t, policy.Store{Type: policy.ControllerStore}, 2)
	s.start(t)
	c.awaitAcknowledgement(t)
	if code, err := askAsEnvoy(t, s); err != nil || code != ratelimitv3.RateLimitResponse_OK {
		t.Fatalf("the first call got %v, %v", code, err)
	}
	if status, _, err := get(t, s.url(15006, "/")); err != nil || status != http.StatusOK {
		t.Fatalf("the first request got %d, %v", status, err)
	}
	if code, err := askAsEnvoy(t, s); err != nil || code != ratelimitv3.RateLimitResponse_OVER_LIMIT {
		t.Errorf("the second call got %v, %v", code, err)
	}
	if _, body, err := get(t, s.url(15020, "/metrics")); err != nil || !strings.Contains(body, `weir_rls_calls_total{result="over_limit"} 1`) {
		t.Errorf("metrics: %v, %s", err, body)
	}
	if got := listening(t, s); got != "1" {
		t.Errorf("weir_rls_listening is %q", got)
	}
}

func TestTheRateLimitServiceCanBeOff(t *testing.T) {
	s := newSandbox(t, http.HandlerFunc(hello))
	s.args = append(s.args, "--rls-address=")
	s.start(t)
	if code, err := askAsEnvoy(t, s); err == nil {
		t.Errorf("it answers %v", code)
	}
	if got := listening(t, s); got != "" {
		t.Errorf("weir_rls_listening is %s of a service that nobody wants", got)
	}
}

// TestThePortOfTheRateLimitServiceIsInUse: the app has it. Requests are served all the
// same, and both the log and the metrics show it.
func TestThePortOfTheRateLimitServiceIsInUse(t *testing.T) {
	s := newSandbox(t, http.HandlerFunc(hello))
	listener, err := net.Listen("tcp", net.JoinHostPort(s.ip, "15011"))
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	s.start(t)
	if status, _, err := get(t, s.url(15006, "/")); err != nil || status != http.StatusOK {
		t.Errorf("a request got %d, %v", status, err)
	}
	if log := s.log.String(); !strings.Contains(log, ":15011") || !strings.Contains(log, "free the port") || !strings.Contains(log, "--rls-address") {
		t.Errorf("the log does not name the cure: %s", log)
	}
	if got := listening(t, s); got != "0" {
		t.Errorf("weir_rls_listening is %q", got)
	}
	s.stop()
	s.wait(t)
}

// listening returns the value of weir_rls_listening, empty without it.
func listening(t *testing.T, s *sandbox) string {
	t.Helper()
	_, body, err := get(t, s.url(15020, "/metrics"))
	if err != nil {
		t.Fatal(err)
	}
	_, after, _ := strings.Cut(body, "\nweir_rls_listening ")
	value, _, _ := strings.Cut(after, "\n")
	return value
}
