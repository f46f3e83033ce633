package conformance

import (
	"context"
	"os/exec"
	"testing"
	"time"
)

// interop are the cases of gRPC's interoperability tests that need no credentials and no
// balancer.
var interop = []string{
	"empty_unary", "large_unary", "client_streaming", "server_streaming", "ping_pong", "empty_stream",
	"timeout_on_sleeping_server", "cancel_after_begin", "cancel_after_first_response",
	"status_code_and_message", "special_status_message", "custom_metadata",
	"unimplemented_method", "unimplemented_service", "rpc_soak", "channel_soak",
}

// TestGRPC runs them with the client and the server of grpc-go.
func TestGRPC(t *testing.T) {
	app := freeAddress(t)
	run(t, program(t, "server"), nil, "--port", portOf(app))
	empty := func(address string) error { return call(t.Context(), program(t, "client"), address, "empty_unary") }
	for _, at := range targets(t, app, empty) {
		t.Run(at.name, func(t *testing.T) {
			passed := 0
			for _, name := range interop {
				t.Run(name, func(t *testing.T) {
					if err := call(t.Context(), program(t, "client"), at.address, name); err != nil {
						t.Error(err)
						return
					}
					passed++
				})
			}
			note("gRPC interoperability, grpc-go", at.name, passed, len(interop))
		})
	}
}

// call runs a case.
func call(ctx context.Context, client, address, name string) error {
	ctx, stop := context.WithTimeout(ctx, time.Minute)
	defer stop()
	out, err := exec.CommandContext(ctx, client, "--server_host", "127.0.0.1", "--server_port", portOf(address), "--use_tls=false", "--test_case", name,
		"--soak_iterations", "50", "--soak_max_failures", "0", "--soak_per_iteration_max_acceptable_latency_ms", "10000",
		"--soak_overall_timeout_seconds", "50").CombinedOutput()
	if err != nil {
		return &caseError{err: err, out: out}
	}
	return nil
}

// A caseError is why a case failed.
type caseError struct {
	err error
	out []byte
}

func (e *caseError) Error() string { return e.err.Error() + "\n" + string(e.out) }
