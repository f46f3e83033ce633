package policy_test

import (
	"testing"

	"github.com/weir-dev/weir/pkg/policy"
)

func descriptor(entries ...policy.Entry) *policy.Request {
	r := policy.NewDescriptor(entries)
	return &r
}

func TestDescriptorsAreMatchedByDescriptorsAlone(t *testing.T) {
	r := descriptor(policy.Entry{Key: "user", Value: "alice"}, policy.Entry{Key: "plan", Value: "gold"}, policy.Entry{Key: "plan", Value: "free"})
	of := func(all ...policy.DescriptorMatch) []policy.Match { return []policy.Match{{Descriptors: all}} }
	for name, tc := range map[string]struct {
		match []policy.Match
		want  bool
	}{
		"a limit without a match":       {nil, true},
		"an entry of any value":         {of(policy.DescriptorMatch{Key: "user"}), true},
		"an entry's value":              {of(policy.DescriptorMatch{Key: "user", Value: "alice"}), true},
		"an entry's other value":        {of(policy.DescriptorMatch{Key: "user", Value: "bob"}), false},
		"the first of two entries":      {of(policy.DescriptorMatch{Key: "plan", Value: "free"}), false},
		"an entry that is missing":      {of(policy.DescriptorMatch{Key: "address"}), false},
		"all of several entries":        {of(policy.DescriptorMatch{Key: "user"}, policy.DescriptorMatch{Key: "address"}), false},
		"one of several matches":        {append(of(policy.DescriptorMatch{Key: "x"}), of(policy.DescriptorMatch{Key: "user"})...), true},
		"a method":                      {[]policy.Match{{Methods: []string{"GET"}}}, false},
		"an expression that is true":    {[]policy.Match{{Expression: "true"}}, false},
		"an expression without a value": {[]policy.Match{{Expression: "request.headers['a'] == 'b'"}}, false},
	} {
		t.Run(name, func(t *testing.T) {
			if got := limitOf(t, matching(tc.match...)).Matches(r); got != tc.want {
				t.Errorf("got %v, want %v", got, tc.want)
			}
			exempt := limitOf(t, func(p *policy.Policy) { p.Limits[0].Exempt = tc.match })
			if got := exempt.Matches(r); len(tc.match) > 0 && got == tc.want {
				t.Errorf("exempt: it is limited: %v", got)
			}
		})
	}
}

func TestDescriptorsHaveKeysOfDescriptorsAlone(t *testing.T) {
	r := descriptor(policy.Entry{Key: "user", Value: "alice"}, policy.Entry{Key: "empty"})
	for part, want := range map[policy.KeyPart]string{
		{Type: policy.DescriptorKey, Name: "user"}:                        "alice",
		{Type: policy.DescriptorKey, Name: "empty"}:                       "",
		{Type: policy.DescriptorKey, Name: "other"}:                       "",
		{Type: policy.HeaderKey, Header: "user"}:                          "",
		{Type: policy.ClientIPKey}:                                        "",
		{Type: policy.PathKey}:                                            "",
		{Type: policy.MethodKey}:                                          "",
		{Type: policy.HostKey}:                                            "",
		{Type: policy.QueryParamKey, Name: "user"}:                        "",
		{Type: policy.JWTClaimKey, Header: "Authorization", Name: "user"}: "",
		{Type: policy.ExpressionKey, Expression: "'a'"}:                   "",
	} {
		got, outcome, _ := limitOf(t, keyed(policy.Skip, part)).Value(r)
		if got != want || (outcome == policy.Skipped) != (want == "") {
			t.Errorf("%v: got %q, %v", part, got, outcome)
		}
	}
	costing := limitOf(t, costing(policy.Cost{Default: 3, Max: 9, RequestHeader: "x-cost"}))
	if got := costing.Cost(r); got != 3 {
		t.Errorf("it costs %d", got)
	}
}
