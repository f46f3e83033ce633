package policy_test

import (
	"bytes"
	"maps"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/weir-dev/weir/pkg/limiter"
	"github.com/weir-dev/weir/pkg/policy"
)

func TestEncodeAndDecodeAreInverse(t *testing.T) {
	for _, want := range []policy.Snapshot{full(), shared(), selective()} {
		data, version, err := policy.Encode(want)
		if err != nil {
			t.Fatal(err)
		}
		if version != policy.Version(data) || !strings.HasPrefix(version, "sha256:") {
			t.Errorf("version %q does not name the data", version)
		}
		got, err := policy.Decode(data)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("decoded differs (-want +got):\n%s", diff)
		}
	}
}

func TestPackAndUnpackAreInverse(t *testing.T) {
	data, _, err := policy.Encode(full())
	if err != nil {
		t.Fatal(err)
	}
	packed, err := policy.Pack(data)
	if err != nil {
		t.Fatal(err)
	}
	got, err := policy.Unpack(packed)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, data) {
		t.Error("unpacked differs from what was packed")
	}
}

func TestDecodeRefuses(t *testing.T) {
	data, _, err := policy.Encode(valid())
	if err != nil {
		t.Fatal(err)
	}
	for name, tc := range map[string]struct{ data, want string }{
		"nothing":                     {"", "EOF"},
		"a field of a later version":  {strings.Replace(string(data), `"cluster"`, `"burst":1,"cluster"`, 1), "burst"},
		"a second snapshot behind it": {string(data) + "{}", "more data"},
		"a value of another type":     {strings.Replace(string(data), `"generation":3`, `"generation":"3"`, 1), "generation"},
		"what does not validate":      {strings.Replace(string(data), `"mode":"Enforce"`, `"mode":"enforce"`, 1), "policies[0].mode"},
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := policy.Decode([]byte(tc.data)); err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("got error %v, want one that names %q", err, tc.want)
			}
		})
	}
}

func TestUnpackRefusesABomb(t *testing.T) {
	packed, err := policy.Pack(make([]byte, policy.MaxSize+1))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := policy.Unpack(packed); err == nil {
		t.Error("more than MaxSize was unpacked")
	}
}

// FuzzDecode checks that whatever decodes also compiles, and encodes to bytes
// that decode to the same.
func FuzzDecode(f *testing.F) {
	for _, s := range []policy.Snapshot{valid(), full(), queued(), carried(), shared(), selective(), pooled(), fullPool()} {
		data, _, err := policy.Encode(s)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(data)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		s, err := policy.Decode(data)
		if err != nil {
			return
		}
		if _, err := policy.Compile(s); err != nil {
			t.Fatalf("it validates but does not compile: %v", err)
		}
		for i := range s.Policies {
			checkParams(t, &s.Policies[i])
		}
		if s.Pool != nil {
			params := s.Pool.Params()
			if err := params.Validate(); err != nil {
				t.Fatalf("the pool validates but is divided by %+v: %v", params, err)
			}
		}
		again, version, err := policy.Encode(s)
		if err != nil {
			t.Fatalf("it decodes but does not encode: %v", err)
		}
		same, err := policy.Decode(again)
		if err != nil {
			t.Fatalf("encoded, it does not decode: %v", err)
		}
		if stable, v, err := policy.Encode(same); err != nil || v != version || !bytes.Equal(stable, again) {
			t.Fatalf("the encoding is not canonical: %s and %s, %v", again, stable, err)
		}
	})
}

// checkParams checks that the core accepts what every counter of p is worked by.
func checkParams(t *testing.T, p *policy.Policy) {
	t.Helper()
	for i := range p.Limits {
		all := map[string]limiter.Params{"": p.Limits[i].Params(p)}
		maps.Copy(all, p.Limits[i].Overridden(p))
		for value, params := range all {
			if err := params.Validate(); err != nil {
				t.Fatalf("limits[%d] validates but %q is worked by %+v: %v", i, value, params, err)
			}
		}
	}
}
