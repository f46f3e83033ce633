package translate

import (
	"strings"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/weir-dev/weir/api/v1alpha1"
	"github.com/weir-dev/weir/pkg/policy"
)

func (t *translator) matches(path *field.Path, ms []v1alpha1.Match) []policy.Match {
	var out []policy.Match
	for i := range ms {
		out = append(out, t.match(path.Index(i), &ms[i]))
	}
	return out
}

func (t *translator) match(path *field.Path, m *v1alpha1.Match) policy.Match {
	out := policy.Match{
		Methods:     texts(m.Methods),
		Hosts:       t.hosts(path.Child("hosts"), m.Hosts),
		SourceCIDRs: texts(m.SourceCIDRs),
		Expression:  m.Expression,
	}
	for i, p := range m.Paths {
		t.value(path.Child("paths").Index(i).Child("value"), p.Value, p.Type == v1alpha1.PathRegularExpression)
		out.Paths = append(out.Paths, policy.PathMatch{Type: policy.MatchType(p.Type), Value: p.Value})
	}
	for i, h := range m.Headers {
		t.value(path.Child("headers").Index(i).Child("value"), h.Value, h.Type == v1alpha1.HeaderRegularExpression)
		out.Headers = append(out.Headers, policy.HeaderMatch{Type: policy.MatchType(h.Type), Name: string(h.Name), Value: h.Value})
	}
	for i, q := range m.QueryParams {
		t.value(path.Child("queryParams").Index(i).Child("value"), q.Value, q.Type == v1alpha1.ValueRegularExpression)
		out.QueryParams = append(out.QueryParams, policy.QueryMatch{Type: policy.MatchType(q.Type), Name: string(q.Name), Value: q.Value})
	}
	for i, c := range m.JWTClaims {
		t.value(path.Child("jwtClaims").Index(i).Child("value"), c.Value, c.Type == v1alpha1.ValueRegularExpression)
		out.JWTClaims = append(out.JWTClaims, policy.ClaimMatch{
			Type: policy.MatchType(c.Type), Header: string(c.Header), Claim: string(c.Claim), Value: c.Value,
			Provider: t.provider(path.Child("jwtClaims").Index(i), c.Verification, c.Provider),
		})
	}
	if g := m.GRPC; g != nil {
		out.GRPC = &policy.GRPCMatch{Service: g.Service, Method: g.Method}
	}
	for i, d := range m.Descriptors {
		t.value(path.Child("descriptors").Index(i).Child("value"), d.Value, false)
		out.Descriptors = append(out.Descriptors, policy.DescriptorMatch{Key: string(d.Key), Value: d.Value})
	}
	if m.Expression != "" {
		t.expression(path.Child("expression"), m.Expression, policy.ValidateCondition)
	}
	return out
}

func texts[Text ~string](all []Text) []string {
	var out []string
	for _, text := range all {
		out = append(out, string(text))
	}
	return out
}

// hosts returns hosts as requests are compared with them.
func (t *translator) hosts(path *field.Path, all []v1alpha1.HostMatch) []string {
	var out []string
	for i, host := range all {
		lower := strings.ToLower(string(host))
		if err := policy.ValidateHost(lower); err != nil {
			t.invalid(path.Index(i), field.OmitValueType{}, err.Error())
		}
		out = append(out, lower)
	}
	return out
}

// value checks a value that requests are compared with.
func (t *translator) value(path *field.Path, value string, expression bool) {
	err := validateValue(path, value, expression)
	if err != nil {
		t.errs = append(t.errs, err)
	}
}

// expression checks an expression of the Common Expression Language.
func (t *translator) expression(path *field.Path, source string, validate func(string) error) {
	if err := validate(source); err != nil {
		t.invalid(path, source, err.Error())
	}
}
