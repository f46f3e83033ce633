package policy_test

import (
	"bytes"
	"errors"
	"maps"
	"slices"
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

// three returns a snapshot of the policies a, b and c, each with that many limits, and a
// pool.
func three() policy.Snapshot {
	s := valid()
	p := s.Policies[0]
	s.Policies = nil
	for _, name := range []string{"a", "b", "c"} {
		p.Name = name
		s.Policies = append(s.Policies, p)
	}
	s.Pool = pooled().Pool
	return s
}

// altered encodes s and makes the first occurrence of each text another, as a later
// version would write it.
func altered(t *testing.T, s policy.Snapshot, texts ...string) []byte {
	t.Helper()
	data, _, err := policy.Encode(s)
	if err != nil {
		t.Fatal(err)
	}
	text := string(data)
	for i := 0; i < len(texts); i += 2 {
		if !strings.Contains(text, texts[i]) {
			t.Fatalf("%s lacks %s", text, texts[i])
		}
		text = strings.Replace(text, texts[i], texts[i+1], 1)
	}
	return []byte(text)
}

func names(s policy.Snapshot) string {
	var all []string
	for _, p := range s.Policies {
		all = append(all, p.Name)
	}
	if s.Pool != nil {
		all = append(all, "pool")
	}
	return strings.Join(all, " ")
}

// TestAnUnknownPartIsRefusedAlone changes one part as a later version might.
func TestAnUnknownPartIsRefusedAlone(t *testing.T) {
	for name, tc := range map[string]struct {
		texts []string
		left  string
		want  policy.Refusal
		cause string
	}{
		"nothing": {nil, "a b c pool", policy.Refusal{}, ""},
		"an unknown field of a policy": {
			[]string{`"name":"b",`, `"name":"b","hours":[9,17],`},
			"a c pool",
			policy.Refusal{Part: policy.PolicyPart, Namespace: "shop", Name: "b"},
			`unknown field "hours"`,
		},
		"an unknown field deep in a policy": {
			[]string{`"name":"b",`, `"name":"b","response":{"colour":"red"},`},
			"a c pool",
			policy.Refusal{Part: policy.PolicyPart, Namespace: "shop", Name: "b"},
			`unknown field "colour"`,
		},
		"an unknown value": {
			[]string{`"name":"b","generation":3,"mode":"Enforce"`, `"name":"b","generation":3,"mode":"Sample"`},
			"a c pool",
			policy.Refusal{Part: policy.PolicyPart, Namespace: "shop", Name: "b"},
			"policies[1].mode",
		},
		"a value of another type": {
			[]string{`"name":"b","generation":3`, `"name":"b","generation":"3"`},
			"a c pool",
			policy.Refusal{Part: policy.PolicyPart, Namespace: "shop", Name: "b"},
			"generation",
		},
		"a policy whose name cannot be read": {
			[]string{`"name":"b"`, `"name":["b"]`},
			"a c pool",
			policy.Refusal{Part: policy.PolicyPart, Name: "policies[1]"},
			"name",
		},
		"an unknown field of the pool": {
			[]string{`"pool":{`, `"pool":{"weight":2,`},
			"a b c",
			policy.Refusal{Part: policy.PoolPart, Namespace: "shop", Name: "checkout"},
			`unknown field "weight"`,
		},
		"an unknown field beside them": {
			[]string{`"cluster"`, `"tiers":[{}],"cluster"`},
			"a b c pool",
			policy.Refusal{Part: policy.FieldPart, Name: "tiers"},
			"not known",
		},
	} {
		t.Run(name, func(t *testing.T) {
			got, refused, err := policy.DecodeParts(altered(t, three(), tc.texts...))
			if err != nil {
				t.Fatal(err)
			}
			if names(got) != tc.left {
				t.Errorf("%q are left, want %q", names(got), tc.left)
			}
			if err := got.Validate(); err != nil {
				t.Errorf("what is left does not validate: %v", err)
			}
			if tc.cause == "" {
				if len(refused) != 0 {
					t.Errorf("refused %v", refused)
				}
				return
			}
			if len(refused) != 1 || !strings.Contains(refused[0].Cause.Error(), tc.cause) {
				t.Fatalf("refused %v, want it to say %q", refused, tc.cause)
			}
			refused[0].Cause = nil
			if diff := cmp.Diff(tc.want, refused[0]); diff != "" {
				t.Errorf("refused (-want +got):\n%s", diff)
			}
		})
	}
}

func TestDataThatIsNotASnapshotIsRefusedAsAWhole(t *testing.T) {
	for name, texts := range map[string][]string{
		"without a cluster":       {`"cluster":"test"`, `"cluster":""`},
		"a cluster of no text":    {`"cluster":"test"`, `"cluster":7`},
		"policies are not a list": {`"policies":[`, `"policies":7,"others":[`},
		"policies out of order":   {`"name":"a"`, `"name":"d"`},
		"one policy, two times":   {`"name":"b"`, `"name":"a"`},
		"something behind it":     {`{"cluster"`, `{}{"cluster"`},
		"a list":                  {`{"cluster"`, `[{"cluster"`},
		"not even an end":         {`"statusCode":503}}`, ``},
		"no JSON in the policy":   {`"name":"b"`, `"name":b`},
		"nothing that is a name":  {`{"cluster"`, `null{"cluster"`},
	} {
		t.Run(name, func(t *testing.T) {
			if s, refused, err := policy.DecodeParts(altered(t, three(), texts...)); err == nil || refused != nil || names(s) != "" {
				t.Errorf("got %q, refused %v, error %v", names(s), refused, err)
			}
		})
	}
}

// TestTheLastGoodVersionStays adopts a snapshot whose every part is refused after one
// that had no part refused.
func TestTheLastGoodVersionStays(t *testing.T) {
	unknown := []string{`"name":"b",`, `"name":"b","hours":[9,17],`, `"pool":{`, `"pool":{"weight":2,`, `"cluster"`, `"pools":[{}],"cluster"`}
	for name, tc := range map[string]struct {
		before func(*policy.Snapshot)
		want   string
		kept   []bool // the policy, the pool, the field
	}{
		"of both":                     {func(*policy.Snapshot) {}, "a b c pool", []bool{true, true, false}},
		"there was none":              {func(s *policy.Snapshot) { s.Policies, s.Pool = nil, nil }, "a c", []bool{false, false, false}},
		"of policies in other places": {func(s *policy.Snapshot) { s.Policies = s.Policies[1:2] }, "a b c pool", []bool{true, true, false}},
		"the pool had another name":   {func(s *policy.Snapshot) { s.Pool.Name = "other" }, "a b c", []bool{true, false, false}},
		"the pool was elsewhere":      {func(s *policy.Snapshot) { s.Pool.Namespace = "other" }, "a b c", []bool{true, false, false}},
		"the policy was elsewhere": {func(s *policy.Snapshot) {
			for i := range s.Policies {
				s.Policies[i].Namespace = "other"
			}
		}, "a c pool", []bool{false, true, false}},
		"of another cluster": {func(s *policy.Snapshot) { s.Cluster = "other" }, "a c", []bool{false, false, false}},
	} {
		t.Run(name, func(t *testing.T) {
			before := three()
			tc.before(&before)
			for i := range before.Policies {
				before.Policies[i].Generation = 2
			}
			s, refused, err := policy.DecodeParts(altered(t, three(), unknown...))
			if err != nil {
				t.Fatal(err)
			}
			s.Keep(&before, refused)
			if names(s) != tc.want {
				t.Errorf("%q are in force, want %q", names(s), tc.want)
			}
			for i, r := range refused {
				if r.Kept != tc.kept[i] {
					t.Errorf("%v: kept %t, want %t", r, r.Kept, tc.kept[i])
				}
			}
			for _, p := range s.Policies {
				if want := map[string]int64{"b": 2}[p.Name]; want != 0 && p.Generation != want {
					t.Errorf("%s is in force in generation %d, want %d", p.Name, p.Generation, want)
				}
			}
			if _, err := policy.Compile(s); err != nil {
				t.Errorf("it does not compile: %v", err)
			}
		})
	}
}

// TestAPolicyIsNotKeptBesideItsNewVersion: a list that names a policy twice, once so that
// it is understood.
func TestAPolicyIsNotKeptBesideItsNewVersion(t *testing.T) {
	before := three()
	s, refused, err := policy.DecodeParts(altered(t, three(), `"name":"b",`, `"name":"a","hours":[9,17],`))
	if err != nil {
		t.Fatal(err)
	}
	if s.Keep(&before, refused); names(s) != "a c pool" || refused[0].Kept {
		t.Errorf("%q are in force, refused %v", names(s), refused)
	}
}

func TestRefusalsNameThePartAndTheCure(t *testing.T) {
	kept := policy.Refusal{Part: policy.PolicyPart, Namespace: "shop", Name: "b", Cause: errors.New(`json: unknown field "hours"`), Kept: true}
	lost := policy.Refusal{Part: policy.PoolPart, Namespace: "shop", Name: "web", Cause: errors.New("pool.mode is odd")}
	field := policy.Refusal{Part: policy.FieldPart, Name: "pools", Cause: errors.New("it is not known")}
	for want, refused := range map[string]policy.Refusals{
		`policy shop/b is not understood, its last good version stays: unknown field "hours"; upgrade the sidecar: restart the pod`: {kept},
		`pool shop/web is not understood and not enforced: pool.mode is odd; upgrade the sidecar: restart the pod`:                  {lost},
		`field pools is not understood; upgrade the sidecar: restart the pod`:                                                       {field},
		`field pools is not understood; field pools is not understood; field pools is not understood; 2 more are not understood; ` +
			`upgrade the sidecar: restart the pod`: {field, field, field, field, field},
	} {
		if got := refused.Error(); got != want {
			t.Errorf("got  %s\nwant %s", got, want)
		}
	}
}

func TestCredentialsAreAllThatAStoreReads(t *testing.T) {
	data := map[string][]byte{
		"username": {1}, "password": {2}, "sentinel-username": {3}, "sentinel-password": {4},
		"rest-token": {10}, "token": {11}, "ca.crt": {5}, "tls.crt": {6}, "tls.key": {7}, "api-key": {8}, "Password": {9},
	}
	got := slices.Sorted(maps.Keys(policy.Credentials(data)))
	want := []string{"ca.crt", "password", "rest-token", "sentinel-password", "sentinel-username", "tls.crt", "tls.key", "username"}
	if !slices.Equal(got, want) || len(data) != 11 {
		t.Errorf("%q of %d are sent, want %q of 11", got, len(data), want)
	}
	if policy.Credentials(nil) != nil {
		t.Error("a secret without data has some")
	}
}
