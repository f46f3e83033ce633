package v1alpha1_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"
)

// validSpecs are at the edge of what the schema accepts.
var validSpecs = map[string]string{
	"a name of 63 characters":                withName(strings.Repeat("a", 63)),
	"a name of one digit":                    withName(`"1"`),
	"32 limits":                              withLimits(repeat(32, `{name: l%d, rates: [{limit: 1, window: 1s}]}`)),
	"four rates":                             withRates(repeat(4, `{limit: 1, window: 1%ds}`)),
	"the largest limit":                      withRates(`[{limit: 1000000000000, window: 1s}]`),
	"the shortest window":                    withWindow(`100ms`),
	"the longest window":                     withWindow(`744h`),
	"a window of several units":              withWindow(`1h30m5s250ms`),
	"eight matches of 16 of everything":      withLimit(`match: ` + repeat(8, `{methods: `+repeat(16, `M%d`)+`, paths: `+repeat(16, `{value: /%d}`)+`, headers: `+repeat(16, `{name: x-%d, value: live}`)+`}`)),
	"a method with a dash":                   withMatch(`methods: [M-SEARCH]`),
	"a path of 1024 characters":              withMatch(`paths: [{value: /` + strings.Repeat("a", 1023) + `}]`),
	"a path expression without a slash":      withMatch(`paths: [{type: RegularExpression, value: "[?].*#"}]`),
	"every character of a header name":       withMatch(`headers: [{type: Present, name: "!#$%&*+-.^_|~09AZaz"}]`),
	"four parts":                             withLimit(`key: {parts: [{type: Header, header: {name: a}}, {type: Header, header: {name: b}}, {type: ClientIP}, {type: Method}]}`),
	"a million keys":                         withLimit(`key: {parts: [{type: Path}], maxKeys: 1000000}`),
	"16 hops":                                withSpec(`clientIP: {trustedHops: 16}`),
	"64 networks":                            withSpec(`clientIP: {trustedCIDRs: ` + repeat(64, `10.%d.0.0/16`) + `}`),
	"networks of both families":              withSpec(`clientIP: {trustedCIDRs: [192.168.1.1/32, "fd00::/8", 0.0.0.0/0]}`),
	"a batch of one":                         withSpec(`consistency: {lease: {size: {batch: 1}}}`),
	"a batch of a million":                   withSpec(`consistency: {lease: {size: {batch: 1000000}}}`),
	"a Redis server by name":                 withRedis(`redis-0.redis.shop.svc.cluster.local:6379`),
	"a Redis server by IPv4 address":         withRedis(`10.0.0.1:65535`),
	"a Redis server by IPv6 address":         withRedis(`[fd00::1]:1`),
	"every action, Deny":                     withSpec(`onStoreUnavailable: {action: Deny}`),
	"every action, Allow":                    withSpec(`onStoreUnavailable: {action: Allow}`),
	"a selector with expressions and labels": `{podSelector: {matchLabels: {app: a}, matchExpressions: [{key: tier, operator: Exists}]}, ` + oneLimit + `}`,
}

func TestValidPoliciesAreAccepted(t *testing.T) {
	for name, spec := range validSpecs {
		t.Run(name, func(t *testing.T) {
			if err := server.Create(t.Context(), newPolicy(t, spec), client.DryRunAll, client.FieldValidation("Strict")); err != nil {
				t.Error(err)
			}
		})
	}
}

func TestSamplesApply(t *testing.T) {
	files, err := filepath.Glob(filepath.Join("..", "..", "config", "samples", "*.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		t.Run(filepath.Base(file), func(t *testing.T) {
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			sample := &unstructured.Unstructured{}
			if err := yaml.UnmarshalStrict(text, &sample.Object); err != nil {
				t.Fatal(err)
			}
			sample.SetNamespace("default")
			applied := client.ApplyConfigurationFromUnstructured(sample)
			if err := server.Apply(t.Context(), applied, client.FieldOwner("sample"), client.ForceOwnership); err != nil {
				t.Error(err)
			}
		})
	}
	if len(files) < 5 {
		t.Errorf("config/samples has %d policies, want at least the quickstart, keyed, Redis, strict and shadow ones", len(files))
	}
}

func TestUnknownFieldsAreRefused(t *testing.T) {
	for _, field := range []string{"targetRefs: []", "accuracy: {maxOvershoot: 2%}", "store: {type: Controller, postgres: {}}"} {
		t.Run(field, func(t *testing.T) {
			err := server.Create(t.Context(), newPolicy(t, withSpec(field)), client.DryRunAll, client.FieldValidation("Strict"))
			if err == nil || !strings.Contains(err.Error(), `unknown field "spec.`) {
				t.Errorf("Create = %v, want a refusal that names the unknown field", err)
			}
		})
	}
}
