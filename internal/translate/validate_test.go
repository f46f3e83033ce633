package translate_test

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/weir-dev/weir/internal/translate"
)

// invalid is a policy that the CRD's schema accepts and nobody can enforce.
type invalid struct {
	spec    string // YAML
	field   string // of the only error
	message string // a part of it that names the cure
}

const oneLimit = `, limits: [{name: all, rates: [{limit: 1, window: 1s}]}]`

func matching(match string) string {
	return `{podSelector: {}, limits: [{name: all, match: [` + match + `], rates: [{limit: 1, window: 1s}]}]}`
}

var invalidPolicies = map[string]invalid{
	"a selector operator that does not exist": {
		`{podSelector: {matchExpressions: [{key: app, operator: Equals, values: [a]}]}` + oneLimit + `}`,
		"spec.podSelector.matchExpressions[0].operator", `supported values: "In", "NotIn"`,
	},
	"an operator that needs values and has none": {
		`{podSelector: {matchExpressions: [{key: app, operator: In}]}` + oneLimit + `}`,
		"spec.podSelector.matchExpressions[0].values", "must be specified when `operator` is 'In' or 'NotIn'",
	},
	"an operator with values it does not take": {
		`{podSelector: {matchExpressions: [{key: app, operator: Exists, values: [a]}]}` + oneLimit + `}`,
		"spec.podSelector.matchExpressions[0].values", "may not be specified when `operator` is 'Exists' or 'DoesNotExist'",
	},
	"a selected label key that no label can have": {
		`{podSelector: {matchLabels: {"a b": c}}` + oneLimit + `}`,
		"spec.podSelector.matchLabels", "must consist of alphanumeric characters",
	},
	"a selected label value that no label can have": {
		`{podSelector: {matchLabels: {app: "a b"}}` + oneLimit + `}`,
		"spec.podSelector.matchLabels", "or consist of alphanumeric characters",
	},
	"a selected value of an expression that no label can have": {
		`{podSelector: {matchExpressions: [{key: app, operator: In, values: ["a b"]}]}` + oneLimit + `}`,
		"spec.podSelector.matchExpressions[0].values[0]", "or consist of alphanumeric characters",
	},
	"a path expression that does not compile": {
		matching(`{paths: [{value: /}, {type: RegularExpression, value: "/("}]}`),
		"spec.limits[0].match[0].paths[1].value", "missing closing ): `/(`): correct it",
	},
	"a path expression in a dialect other than RE2": {
		matching(`{paths: [{type: RegularExpression, value: "/(?=x)"}]}`),
		"spec.limits[0].match[0].paths[0].value", "not an RE2 expression",
	},
	"a path expression whose brackets only balance within ours": {
		matching(`{paths: [{type: RegularExpression, value: "/a)(b"}]}`),
		"spec.limits[0].match[0].paths[0].value", "unexpected )",
	},
	"a header expression that does not compile": {
		matching(`{headers: [{type: RegularExpression, name: x-region, value: "[a"}]}`),
		"spec.limits[0].match[0].headers[0].value", "missing closing ]",
	},
	"a path of 1024 characters that takes more bytes": {
		matching(`{paths: [{type: Exact, value: "/` + strings.Repeat("é", 600) + `"}]}`),
		"spec.limits[0].match[0].paths[0].value", "takes 1201 bytes: shorten it to at most 1024",
	},
	"a header value of 1024 characters that takes more bytes": {
		matching(`{headers: [{name: x-region, value: "` + strings.Repeat("é", 600) + `"}]}`),
		"spec.limits[0].match[0].headers[0].value", "takes 1200 bytes: shorten it to at most 1024",
	},
	"a window with a fraction, past the schema": {
		`{podSelector: {}, limits: [{name: all, rates: [{limit: 1, window: 1.5s}]}]}`,
		"spec.limits[0].rates[0].window", "write whole numbers of h, m, s and ms",
	},
	"what only a sidecar would refuse": {
		`{podSelector: {}, limits: [{name: all, rates: [{limit: 0, window: 1s}]}]}`,
		"spec.limits[0].rates", "rates[0].limit is 0, outside 1 to 1000000000000",
	},
}

func TestValidateRefuses(t *testing.T) {
	for name, tc := range invalidPolicies {
		t.Run(name, func(t *testing.T) {
			p := defaulted(t, []byte(`{metadata: {name: checkout, namespace: shop}, spec: `+tc.spec+`}`))
			warnings, errs := translate.Validate(p)
			if len(errs) != 1 || errs[0].Field != tc.field || !strings.Contains(errs[0].Error(), tc.message) {
				t.Errorf("Validate = %v\nwant one error about %s that says %q", errs, tc.field, tc.message)
			}
			if len(warnings) > 0 {
				t.Errorf("an invalid policy has warnings: %q", warnings)
			}
			if _, err := translate.Policy(p); err == nil {
				t.Error("Policy translates what Validate refuses")
			}
		})
	}
}

func TestValidateNamesEveryFault(t *testing.T) {
	p := defaulted(t, []byte(`
metadata: {name: checkout, namespace: shop}
spec:
  podSelector: {matchExpressions: [{key: app, operator: Equals}]}
  limits:
  - name: first
    match: [{paths: [{type: RegularExpression, value: "("}], headers: [{type: RegularExpression, name: x, value: "("}]}]
    rates: [{limit: 1, window: 1s}]
  - name: second
    rates: [{limit: 1, window: soon}]
`))
	want := []string{
		"spec.podSelector.matchExpressions[0].operator",
		"spec.limits[0].match[0].paths[0].value",
		"spec.limits[0].match[0].headers[0].value",
		"spec.limits[1].rates[0].window",
	}
	_, errs := translate.Validate(p)
	if got := fields(errs); strings.Join(got, " ") != strings.Join(want, " ") {
		t.Errorf("faults in %q, want %q", got, want)
	}
}

func fields(errs field.ErrorList) []string {
	var names []string
	for _, err := range errs {
		names = append(names, err.Field)
	}
	return names
}
