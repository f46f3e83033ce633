package rls

import (
	"bytes"
	"strings"
	"testing"

	commonv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/common/ratelimit/v3"
	ratelimitv3 "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"
	typev3 "github.com/envoyproxy/go-control-plane/envoy/type/v3"
	"google.golang.org/grpc/mem"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/wrapperspb"
)

// wholeCall returns a call with all fields there are, its user's name being value.
func wholeCall(value string) *ratelimitv3.RateLimitRequest {
	return &ratelimitv3.RateLimitRequest{
		Domain: "checkout", HitsAddend: 7,
		Descriptors: []*commonv3.RateLimitDescriptor{
			{
				Entries: []*commonv3.RateLimitDescriptor_Entry{{Key: "user", Value: value}, {Key: "path", Value: "/"}},
				Limit: &commonv3.RateLimitDescriptor_RateLimitOverride{
					RequestsPerUnit: 3, Unit: typev3.RateLimitUnit_HOUR, UnitMultiplier: wrapperspb.UInt32(2),
				},
				HitsAddend: wrapperspb.UInt64(1 << 40), IsNegativeHits: true,
			},
			{Entries: []*commonv3.RateLimitDescriptor_Entry{{Key: "tier"}}},
		},
	}
}

// wireOf returns a call on the wire. The value takes its place there, as proto
// marshals no other than UTF-8.
func wireOf(t testing.TB, value string) []byte {
	t.Helper()
	standIn := bytes.Repeat([]byte("v"), len(value))
	wire, err := proto.Marshal(wholeCall(string(standIn)))
	if err != nil {
		t.Fatal(err)
	}
	return bytes.Replace(wire, standIn, []byte(value), 1)
}

// unmarshal returns what the codec makes of b, and how often it reported that it cannot.
func unmarshal(b []byte) (in *ratelimitv3.RateLimitRequest, reported int, err error) {
	in = new(ratelimitv3.RateLimitRequest)
	err = newCodec(func(error) { reported++ }).Unmarshal(mem.BufferSlice{mem.SliceBuffer(b)}, in)
	return in, reported, err
}

// TestBytesOfAnyKindAreRead: the whole of a call is there and its bytes are kept.
func TestBytesOfAnyKindAreRead(t *testing.T) {
	for _, value := range []string{"ann", "\xff", "ann\xff\xfe", "\xc3", "\xed\xa0\x80", "\x00\xff%FF\uFFFD"} {
		in, reported, err := unmarshal(wireOf(t, value))
		if err != nil || reported != 0 {
			t.Errorf("%q: %v, reported %d times", value, err, reported)
			continue
		}
		entry := in.GetDescriptors()[0].GetEntries()[0]
		if entry.GetValue() != value {
			t.Errorf("%q is read as %q", value, entry.GetValue())
		}
		entry.Value = "ann"
		if !proto.Equal(in, wholeCall("ann")) {
			t.Errorf("%q: the rest is read as %v", value, in)
		}
	}
}

// TestUnreadableMessagesAreReported: a message that ends early, also behind bytes that are
// not UTF-8, is refused and reported once.
func TestUnreadableMessagesAreReported(t *testing.T) {
	cut := wireOf(t, "\xff")
	for name, b := range map[string][]byte{
		"ends early":           cut[:len(cut)-1],
		"a tag of no field":    append(bytes.Clone(cut), 0),
		"an entry ends early":  {0x12, 2, 0x0a, 5},
		"a nested bad integer": {0x0a, 1, 0xff, 0x12, 4, 0x1a, 2, 0x08, 0xff},
	} {
		if in, reported, err := unmarshal(b); err == nil || reported != 1 {
			t.Errorf("%s: %v, reported %d times: %v", name, err, reported, in)
		}
	}
}

// FuzzUnmarshalRaw: messages that proto reads are read alike, others only if their
// strings are not UTF-8, and nothing panics.
func FuzzUnmarshalRaw(f *testing.F) {
	for _, value := range []string{"ann", "\xff", "\xc3\x28"} {
		f.Add(wireOf(f, value))
	}
	f.Add([]byte{0x0a, 1, 0xff, 0x0a, 1, 'd', 0x18, 1, 0x18, 2})              // fields twice
	f.Add([]byte{0x10, 1, 0x08, 1, 0x1a, 1, 5})                               // of another kind
	f.Add([]byte{0x12, 4, 0x12, 2, 0x08, 3, 0x12, 6, 0x1a, 0, 0x1a, 2, 8, 1}) // merged messages
	f.Add(append(protowire.AppendTag(nil, 99, protowire.StartGroupType), 0x9c, 0x06))
	f.Add([]byte{0x2a, 1, 0xff, 0x13, 0x14}) // unknown fields
	f.Fuzz(func(t *testing.T, b []byte) {
		want, got := new(ratelimitv3.RateLimitRequest), new(ratelimitv3.RateLimitRequest)
		ours, theirs := unmarshalRaw(b, got.ProtoReflect()), proto.Unmarshal(b, want)
		switch {
		case theirs == nil && ours != nil:
			t.Errorf("refused: %v", ours)
		case theirs == nil && !proto.Equal(got, want):
			t.Errorf("read as %v, want %v", got, want)
		case theirs != nil && ours == nil && !strings.Contains(theirs.Error(), "invalid UTF-8"):
			t.Errorf("read as %v, want %v", got, theirs)
		}
	})
}
