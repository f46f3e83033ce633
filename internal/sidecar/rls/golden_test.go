package rls_test

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"errors"
	"flag"
	"os"
	"path/filepath"
	"testing"

	ratelimitv3 "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"
	"github.com/google/go-cmp/cmp"
	"google.golang.org/grpc"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/weir-dev/weir/pkg/limiter"
)

var update = flag.Bool("update", false, "rewrite the golden files")

// TestTheWire compares the bytes of answers, and what Envoy's own types read in them.
func TestTheWire(t *testing.T) {
	p := policyOf(limitOf("user", 5, 10*60*limiter.Second), limitOf("path", 3, limiter.Second))
	p.Limits[1].Algorithm = "GCRA"
	s := serve(t, enforcing(t, newStore(frozen), p))
	costly := call("checkout", "user=ann path=/", "user=bob")
	costly.Descriptors[1].HitsAddend = wrapperspb.UInt64(6)
	for _, step := range []struct {
		name string
		in   *ratelimitv3.RateLimitRequest
	}{
		{"admitted", call("checkout", "user=ann path=/", "user=bob")},
		{"unlimited", call("*", "remote_address=10.0.0.1")},
		{"unknown-domain", call("envoy", "user=ann", "user=bob")},
		{"too-large", costly},
		{"refused", &ratelimitv3.RateLimitRequest{Domain: "checkout", HitsAddend: 5, Descriptors: call("", "user=bob", "user=carol").Descriptors}},
	} {
		t.Run(step.name, func(t *testing.T) { golden(t, step.name, raw(t, s.connection, step.in)) })
	}
}

func golden(t *testing.T, name string, wire []byte) {
	t.Helper()
	file := filepath.Join("testdata", name+".golden")
	got := readable(t, wire)
	if *update {
		if err := os.WriteFile(file, got, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), string(got)); diff != "" {
		t.Errorf("answer (-want +got):\n%s", diff)
	}
}

// readable returns the bytes and what they say.
func readable(t *testing.T, wire []byte) []byte {
	t.Helper()
	out := new(ratelimitv3.RateLimitResponse)
	if err := proto.Unmarshal(wire, out); err != nil {
		t.Fatal(err)
	}
	text, err := protojson.Marshal(out)
	if err != nil {
		t.Fatal(err)
	}
	var b bytes.Buffer
	if err := json.Indent(&b, text, "", "  "); err != nil { // protojson varies its spaces
		t.Fatal(err)
	}
	return append(append(b.Bytes(), '\n'), hex.Dump(wire)...)
}

// raw returns the bytes of the answer.
func raw(t *testing.T, c *grpc.ClientConn, in proto.Message) []byte {
	t.Helper()
	var out []byte
	if err := c.Invoke(t.Context(), ratelimitv3.RateLimitService_ShouldRateLimit_FullMethodName, in, &out, grpc.ForceCodec(rawCodec{})); err != nil {
		t.Fatal(err)
	}
	return out
}

// rawCodec leaves answers as they came.
type rawCodec struct{}

func (rawCodec) Name() string { return "proto" }

func (rawCodec) Marshal(v any) ([]byte, error) {
	m, ok := v.(proto.Message)
	if !ok {
		return nil, errors.New("no message")
	}
	return proto.Marshal(m)
}

func (rawCodec) Unmarshal(data []byte, v any) error {
	out, ok := v.(*[]byte)
	if !ok {
		return errors.New("nowhere to put bytes")
	}
	*out = bytes.Clone(data)
	return nil
}
