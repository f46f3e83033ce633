package rls_test

import (
	"fmt"
	"testing"

	ratelimitv3 "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/encoding"
	"google.golang.org/grpc/mem"
	"google.golang.org/grpc/status"
)

// wire is a codec that sends bytes as they are, which Envoy's is for strings.
type wire struct{ encoding.CodecV2 }

func (wire) Marshal(v any) (mem.BufferSlice, error) {
	return mem.BufferSlice{mem.SliceBuffer(v.([]byte))}, nil
}

// ask sends a call on the wire.
func (s *side) ask(t *testing.T, b []byte) (*ratelimitv3.RateLimitResponse, error) {
	t.Helper()
	out := new(ratelimitv3.RateLimitResponse)
	codec := wire{encoding.GetCodecV2("proto")}
	err := s.connection.Invoke(t.Context(), ratelimitv3.RateLimitService_ShouldRateLimit_FullMethodName, b, out, grpc.ForceCodecV2(codec))
	return out, err
}

// named returns the wire of a call about one user of domain checkout.
func named(user string) []byte {
	entry := fmt.Sprintf("\x0a\x04user\x12%c%s", rune(len(user)), user)
	descriptor := fmt.Sprintf("\x0a%c%s", rune(len(entry)), entry)
	return fmt.Appendf(nil, "\x0a\x08checkout\x12%c%s", rune(len(descriptor)), descriptor)
}

// TestNoBytesEscapeALimit: each name has a counter of its own, whatever it is made of,
// and keeps it.
func TestNoBytesEscapeALimit(t *testing.T) {
	s := serve(t, enforcing(t, newStore(frozen), policyOf(limitOf("user", 1, hour))))
	names := []string{"ann", "\xff", "\xfe", "\xff\xff", "\uFFFD", "%FF", "%ff", `\xff`, "ann\xff", "\xffann"}
	for _, want := range []ratelimitv3.RateLimitResponse_Code{ratelimitv3.RateLimitResponse_OK, ratelimitv3.RateLimitResponse_OVER_LIMIT} {
		for _, name := range names {
			if out, err := s.ask(t, named(name)); err != nil || out.GetOverallCode() != want {
				t.Errorf("%q got %v, %v, want %v", name, out.GetOverallCode(), err, want)
			}
		}
	}
	if got := s.result(t, "failed"); got != 0 {
		t.Errorf("%v calls failed", got)
	}
}

func TestAnUndecodableCallIsCounted(t *testing.T) {
	s := serve(t, enforcing(t, newStore(frozen), policyOf(limitOf("user", 1, hour))))
	whole := named("\xff")
	if _, err := s.ask(t, whole[:len(whole)-1]); status.Code(err) != codes.Internal {
		t.Errorf("got %v", err)
	}
	if got := s.result(t, "failed"); got != 1 {
		t.Errorf("%v calls failed, want one", got)
	}
}
