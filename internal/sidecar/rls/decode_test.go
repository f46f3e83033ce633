package rls

import (
	"bytes"
	"strings"
	"testing"

	commonv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/common/ratelimit/v3"
	ratelimitv3 "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"
	typev3 "github.com/envoyproxy/go-control-plane/envoy/type/v3"
	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/weir-dev/weir/pkg/policy"
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

// asked returns what proto read, as this package has it.
func asked(in *ratelimitv3.RateLimitRequest) (r request) {
	r = request{domain: in.GetDomain(), hits: in.GetHitsAddend(), count: len(in.GetDescriptors())}
	for _, d := range in.GetDescriptors()[:min(maxDescriptors, r.count)] {
		one := descriptor{
			hits: d.GetHitsAddend().GetValue(), hasHits: d.GetHitsAddend() != nil, hasLimit: d.GetLimit() != nil,
			negative: d.GetIsNegativeHits(), count: len(d.GetEntries()),
		}
		for _, e := range d.GetEntries()[:min(maxEntries, one.count)] {
			one.entries = append(one.entries, policy.Entry{Key: e.GetKey(), Value: e.GetValue()})
		}
		r.descriptors = append(r.descriptors, one)
	}
	return r
}

var allFields = cmp.AllowUnexported(request{}, descriptor{})

// TestBytesOfAnyKindAreRead: the whole of a call is there and its bytes are kept.
func TestBytesOfAnyKindAreRead(t *testing.T) {
	for _, value := range []string{"ann", "\xff", "ann\xff\xfe", "\xc3", "\xed\xa0\x80", "\x00\xff%FF\uFFFD"} {
		var got request
		if err := got.decode(wireOf(t, value)); err != nil {
			t.Errorf("%q: %v", value, err)
		}
		want := asked(wholeCall("ann"))
		want.descriptors[0].entries[0].Value = value
		if diff := cmp.Diff(want, got, allFields); diff != "" {
			t.Errorf("%q is read as (-want +got):\n%s", value, diff)
		}
	}
}

// TestUnreadableMessagesAreRefused: a message that ends early, also behind bytes that are not
// UTF-8.
func TestUnreadableMessagesAreRefused(t *testing.T) {
	cut := wireOf(t, "\xff")
	for name, b := range map[string][]byte{
		"ends early":           cut[:len(cut)-1],
		"a tag of no field":    append(bytes.Clone(cut), 0),
		"an entry ends early":  {0x12, 2, 0x0a, 5},
		"a nested bad integer": {0x0a, 1, 0xff, 0x12, 4, 0x1a, 2, 0x08, 0xff},
	} {
		if err := new(request).decode(b); err == nil {
			t.Errorf("%s: it is read", name)
		}
	}
}

// TestExcessTakesNoMemory: descriptors and entries beyond the bounds are only counted.
func TestExcessTakesNoMemory(t *testing.T) {
	many := &ratelimitv3.RateLimitRequest{Descriptors: make([]*commonv3.RateLimitDescriptor, 100_000)}
	for i := range many.Descriptors {
		many.Descriptors[i] = new(commonv3.RateLimitDescriptor)
	}
	many.Descriptors[0].Entries = make([]*commonv3.RateLimitDescriptor_Entry, 100_000)
	for i := range many.Descriptors[0].Entries {
		many.Descriptors[0].Entries[i] = new(commonv3.RateLimitDescriptor_Entry)
	}
	wire, err := proto.Marshal(many)
	if err != nil {
		t.Fatal(err)
	}
	var got request
	if allocs := testing.AllocsPerRun(1, func() {
		got = request{}
		err = got.decode(wire)
	}); allocs > 100 {
		t.Errorf("%v allocations", allocs)
	}
	if err != nil || got.count != 100_000 || got.descriptors[0].count != 100_000 {
		t.Errorf("got %d descriptors, the first with %d entries, %v", got.count, got.descriptors[0].count, err)
	}
}

// FuzzDecode: messages that proto reads are read alike, others only if their strings are not
// UTF-8, and nothing panics.
func FuzzDecode(f *testing.F) {
	for _, value := range []string{"ann", "\xff", "\xc3\x28"} {
		f.Add(wireOf(f, value))
	}
	f.Add([]byte{0x0a, 1, 0xff, 0x0a, 1, 'd', 0x18, 1, 0x18, 2})              // fields twice
	f.Add([]byte{0x10, 1, 0x08, 1, 0x1a, 1, 5})                               // of another kind
	f.Add([]byte{0x12, 4, 0x12, 2, 0x08, 3, 0x12, 6, 0x1a, 0, 0x1a, 2, 8, 1}) // merged messages
	f.Add([]byte{0x12, 6, 0x1a, 2, 8, 5, 0x1a, 0})                            // hits that are merged
	f.Add([]byte{0x12, 4, 0x12, 2, 0x1a, 0x7f})                               // a limit that ends early
	f.Add(append(protowire.AppendTag(nil, 99, protowire.StartGroupType), 0x9c, 0x06))
	f.Add([]byte{0x2a, 1, 0xff, 0x13, 0x14}) // unknown fields
	f.Fuzz(func(t *testing.T, b []byte) {
		in := new(ratelimitv3.RateLimitRequest)
		var got request
		ours, theirs := got.decode(b), proto.Unmarshal(b, in)
		switch {
		case theirs == nil && ours != nil:
			t.Errorf("refused: %v", ours)
		case theirs == nil && !cmp.Equal(got, asked(in), allFields):
			t.Errorf("read as (-want +got):\n%s", cmp.Diff(asked(in), got, allFields))
		case theirs != nil && ours == nil && !strings.Contains(theirs.Error(), "invalid UTF-8"):
			t.Errorf("read as %v, want %v", got, theirs)
		}
	})
}
