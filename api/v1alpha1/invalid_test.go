package v1alpha1_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// invalid is a spec that the API server refuses for one reason.
type invalid struct {
	spec    string // YAML
	field   string // that the error names
	message string // a part of the error that names the cure
}

const (
	selectAll = `podSelector: {}`
	oneLimit  = `limits: [{name: all, rates: [{limit: 1, window: 1s}]}]`
)

// withSpec returns a valid spec with more fields.
func withSpec(fields string) string { return `{` + selectAll + `, ` + oneLimit + `, ` + fields + `}` }

// withLimits returns a spec with these limits.
func withLimits(limits string) string { return `{` + selectAll + `, limits: ` + limits + `}` }

// withName returns a spec with a limit of that name.
func withName(name string) string {
	return withLimits(`[{name: ` + name + `, rates: [{limit: 1, window: 1s}]}]`)
}

// withLimit returns a spec with a valid limit that has more fields.
func withLimit(fields string) string {
	return withLimits(`[{name: all, rates: [{limit: 1, window: 1s}], ` + fields + `}]`)
}

// withRates returns a spec with these rates.
func withRates(rates string) string { return withLimits(`[{name: all, rates: ` + rates + `}]`) }

func withWindow(window string) string { return withRates(`[{limit: 1, window: ` + window + `}]`) }

// withMatch returns a spec with a limit with one match entry.
func withMatch(fields string) string { return withLimit(`match: [{` + fields + `}]`) }

// withAlgorithm returns a spec in mode Strict with a limit of that algorithm that has
// more fields.
func withAlgorithm(algorithm, fields string) string {
	return `{` + selectAll + `, consistency: {mode: Strict}, limits: [{name: all, algorithm: ` + algorithm + `, ` + fields + `}]}`
}

// withLease returns a spec with a lease.
func withLease(fields string) string { return withSpec(`consistency: {lease: {` + fields + `}}`) }

// leasing returns a spec with that lease and a limit of that algorithm.
func leasing(algorithm, lease string) string {
	return `{` + selectAll + `, consistency: {lease: {` + lease + `}}, limits: [{name: all, algorithm: ` + algorithm + `, rates: [{limit: 1, window: 1s}]}]}`
}

// withGroups returns a spec with limits a, b, c and shadow, and groups of them.
func withGroups(groups string) string {
	return `{` + selectAll + `, limits: [{name: a, ` + aRate + `}, {name: b, ` + aRate + `}, {name: c, ` + aRate + `}, {name: shadow, mode: Shadow, ` + aRate + `}], anyOf: [` + groups + `]}`
}

func withStore(fields string) string { return withSpec(`store: {` + fields + `}`) }

func withRedis(address string) string {
	return withSpec(`store: {type: Redis, redis: {address: "` + address + `"}}`)
}

func withREST(url string) string {
	return withStore(`type: Redis, redis: {rest: {url: "` + url + `"}, secretRef: {name: redis}}`)
}

// repeat returns a YAML list of n entries; each may use its number as %d.
func repeat(n int, entry string) string {
	var entries []string
	for i := range n {
		entries = append(entries, strings.ReplaceAll(entry, "%d", fmt.Sprint(i)))
	}
	return `[` + strings.Join(entries, ", ") + `]`
}

const (
	notALabel    = "use lower-case letters, digits and dashes"
	notADuration = "write whole numbers of h, m, s and ms, such as 500ms, 10s or 1h30m"
	notHostPort  = "write a name or an address and a port from 1 to 65535 without a scheme"
	notREST      = "write https, a host and perhaps a port and a path, without a user and without a query"
	notANetwork  = "write an address and a prefix length, such as 10.0.0.0/8"
	notAHeader   = "use letters, digits and dashes, such as x-tenant"
	exactlyOne   = "set exactly one of trustedHops and trustedCIDRs, or remove clientIP"
)

var invalidSpecs = map[string]invalid{
	"alternatives that are not there":   {withGroups(`{limits: [a, x]}`), "spec.anyOf", "name entries of limits"},
	"alternatives that are the same":    {withGroups(`{limits: [a, a]}`), "spec.anyOf", "a limit is in one group, and once"},
	"a limit in two groups":             {withGroups(`{limits: [a, b]}, {limits: [b, c]}`), "spec.anyOf", "a limit is in one group, and once"},
	"a single alternative":              {withGroups(`{limits: [a]}`), "spec.anyOf[0].limits", "should have at least 2 items"},
	"nine alternatives":                 {withGroups(`{limits: [a, a, a, a, a, a, a, a, a]}`), "spec.anyOf[0].limits", "must have at most 8 items"},
	"nine groups":                       {withSpec(`anyOf: ` + repeat(9, `{limits: [all, all]}`)), "spec.anyOf", "must have at most 8 items"},
	"an alternative that lets all pass": {withGroups(`{limits: [a, shadow]}`), "spec.anyOf", "set its mode to Enforce, take it out of anyOf, or set spec.mode to Shadow"},

	"no podSelector":                 {`{` + oneLimit + `}`, "spec.podSelector", "Required value"},
	"a podSelector that is a string": {`{podSelector: "app=checkout", ` + oneLimit + `}`, "spec.podSelector", "must be of type object"},
	"a mode that does not exist":     {withSpec(`mode: DryRun`), "spec.mode", `supported values: "Enforce", "Shadow"`},
	"a mode in lower case":           {withSpec(`mode: shadow`), "spec.mode", `supported values: "Enforce", "Shadow"`},

	"no limits":                      {`{` + selectAll + `}`, "spec.limits", "Required value"},
	"an empty list of limits":        {withLimits(`[]`), "spec.limits", "should have at least 1 items"},
	"33 limits":                      {withLimits(repeat(33, `{name: l%d, rates: [{limit: 1, window: 1s}]}`)), "spec.limits", "must have at most 32 items"},
	"two limits of one name":         {withLimits(repeat(2, `{name: all, rates: [{limit: 1, window: 1s}]}`)), "spec.limits[1]", "Duplicate value"},
	"a limit without a name":         {withLimits(`[{rates: [{limit: 1, window: 1s}]}]`), "spec.limits[0].name", "Required value"},
	"an empty name":                  {withName(`""`), "spec.limits[0].name", notALabel},
	"a name of 64 characters":        {withName(strings.Repeat("a", 64)), "spec.limits[0].name", "may not be more than 63"},
	"a name in upper case":           {withName(`PerTenant`), "spec.limits[0].name", notALabel},
	"a name with an underscore":      {withName(`per_tenant`), "spec.limits[0].name", notALabel},
	"a name with a dot":              {withName(`per.tenant`), "spec.limits[0].name", notALabel},
	"a name that starts with a dash": {withName(`-tenant`), "spec.limits[0].name", notALabel},
	"a name that ends with a dash":   {withName(`tenant-`), "spec.limits[0].name", notALabel},
	"a limit without rates":          {withLimits(`[{name: all}]`), "spec.limits[0].rates", "Required value"},
	"an empty list of rates":         {withRates(`[]`), "spec.limits[0].rates", "should have at least 1 items"},
	"five rates":                     {withRates(repeat(5, `{limit: 1, window: 1%ds}`)), "spec.limits[0].rates", "must have at most 4 items"},
	"two rates with one window":      {withRates(`[{limit: 1, window: 1s}, {limit: 2, window: 1s}]`), "spec.limits[0].rates", "keep the one with the smaller limit"},
	"60s and 1m":                     {withRates(`[{limit: 1, window: 60s}, {limit: 2, window: 1m}]`), "spec.limits[0].rates", "keep the one with the smaller limit"},
	"one window twice among four":    {withRates(`[{limit: 1, window: 1s}, {limit: 2, window: 2s}, {limit: 3, window: 3s}, {limit: 4, window: 2000ms}]`), "spec.limits[0].rates", "keep the one with the smaller limit"},
	"a rate without a limit":         {withRates(`[{window: 1s}]`), "spec.limits[0].rates[0].limit", "Required value"},
	"a limit of zero":                {withRates(`[{limit: 0, window: 1s}]`), "spec.limits[0].rates[0].limit", "should be greater than or equal to 1"},
	"a negative limit":               {withRates(`[{limit: -1, window: 1s}]`), "spec.limits[0].rates[0].limit", "should be greater than or equal to 1"},
	"a limit beyond exact integers":  {withRates(`[{limit: 1000000000001, window: 1s}]`), "spec.limits[0].rates[0].limit", "should be less than or equal to 1000000000000"},
	"a limit with a fraction":        {withRates(`[{limit: 1.5, window: 1s}]`), "spec.limits[0].rates[0].limit", "must be of type int64"},
	"a limit that is a string":       {withRates(`[{limit: "10", window: 1s}]`), "spec.limits[0].rates[0].limit", "must be of type integer"},
	"a rate without a window":        {withRates(`[{limit: 1}]`), "spec.limits[0].rates[0]", "set exactly one of window, a length such as 10s, and cadence"},
	"an empty window":                {withWindow(`""`), "spec.limits[0].rates[0].window", notADuration},
	"a window that is a number":      {withWindow(`10`), "spec.limits[0].rates[0].window", "must be of type string"},
	"a window without a unit":        {withWindow(`"10"`), "spec.limits[0].rates[0].window", notADuration},
	"a window with a fraction":       {withWindow(`1.5s`), "spec.limits[0].rates[0].window", notADuration},
	"a window in days":               {withWindow(`1d`), "spec.limits[0].rates[0].window", notADuration},
	"a window in microseconds":       {withWindow(`200000us`), "spec.limits[0].rates[0].window", notADuration},
	"a window in words":              {withWindow(`minute`), "spec.limits[0].rates[0].window", notADuration},
	"a negative window":              {withWindow(`-1s`), "spec.limits[0].rates[0].window", notADuration},
	"a window of zero":               {withWindow(`0s`), "spec.limits[0].rates[0].window", "not a duration from 100ms to 744h"},
	"a window just too short":        {withWindow(`99ms`), "spec.limits[0].rates[0].window", "not a duration from 100ms to 744h"},
	"a window just too long":         {withWindow(`744h1ms`), "spec.limits[0].rates[0].window", "not a duration from 100ms to 744h"},
	"a window of 33 characters":      {withWindow(strings.Repeat("1s", 16) + "1"), "spec.limits[0].rates[0].window", "may not be more than 32"},
	"a bad window among good ones":   {withRates(`[{limit: 1, window: 1s}, {limit: 2, window: 1d}]`), "spec.limits[0].rates[1].window", notADuration},
	"a bad window beside equal ones": {withRates(`[{limit: 1, window: 1s}, {limit: 2, window: 1s}, {limit: 3, window: 1d}]`), "spec.limits[0].rates[2].window", notADuration},

	"an empty list of matches":         {withLimit(`match: []`), "spec.limits[0].match", "should have at least 1 items"},
	"nine matches":                     {withLimit(`match: ` + repeat(9, `{methods: [GET]}`)), "spec.limits[0].match", "must have at most 8 items"},
	"a match of nothing":               {withMatch(``), "spec.limits[0].match[0]", "descriptors and expression, or remove it (the list, too, when nothing else is in it)"},
	"an empty list of methods":         {withMatch(`methods: []`), "spec.limits[0].match[0].methods", "should have at least 1 items"},
	"17 methods":                       {withMatch(`methods: ` + repeat(17, `M%d`)), "spec.limits[0].match[0].methods", "must have at most 16 items"},
	"a method twice":                   {withMatch(`methods: [GET, GET]`), "spec.limits[0].match[0].methods[1]", "Duplicate value"},
	"a method in lower case":           {withMatch(`methods: [get]`), "spec.limits[0].match[0].methods[0]", "write it in upper case, such as GET"},
	"two methods in one string":        {withMatch(`methods: ["GET POST"]`), "spec.limits[0].match[0].methods[0]", "write it in upper case, such as GET"},
	"any method as a star":             {withMatch(`methods: ["*"]`), "spec.limits[0].match[0].methods[0]", "write it in upper case, such as GET"},
	"a method of 33 characters":        {withMatch(`methods: [` + strings.Repeat("A", 33) + `]`), "spec.limits[0].match[0].methods[0]", "may not be more than 32"},
	"an empty list of paths":           {withMatch(`paths: []`), "spec.limits[0].match[0].paths", "should have at least 1 items"},
	"17 paths":                         {withMatch(`paths: ` + repeat(17, `{value: /%d}`)), "spec.limits[0].match[0].paths", "must have at most 16 items"},
	"a path prefix without a slash":    {withMatch(`paths: [{value: orders}]`), "spec.limits[0].match[0].paths[0].value", "write /orders instead of orders"},
	"an exact path without a slash":    {withMatch(`paths: [{type: Exact, value: orders}]`), "spec.limits[0].match[0].paths[0].value", "write /orders instead of orders"},
	"a path with a query":              {withMatch(`paths: [{value: "/orders?id=1"}]`), "spec.limits[0].match[0].paths[0].value", "remove everything from ? or # on"},
	"a path with a fragment":           {withMatch(`paths: [{type: Exact, value: "/orders#top"}]`), "spec.limits[0].match[0].paths[0].value", "remove everything from ? or # on"},
	"a path type that does not exist":  {withMatch(`paths: [{type: Prefix, value: /orders}]`), "spec.limits[0].match[0].paths[0].type", `supported values: "PathPrefix", "Exact", "RegularExpression"`},
	"a path without a value":           {withMatch(`paths: [{type: Exact}]`), "spec.limits[0].match[0].paths[0].value", "Required value"},
	"an empty path":                    {withMatch(`paths: [{value: ""}]`), "spec.limits[0].match[0].paths[0].value", "should be at least 1 chars long"},
	"a path of 1025 characters":        {withMatch(`paths: [{value: /` + strings.Repeat("a", 1024) + `}]`), "spec.limits[0].match[0].paths[0].value", "may not be more than 1024"},
	"an empty list of headers":         {withMatch(`headers: []`), "spec.limits[0].match[0].headers", "should have at least 1 items"},
	"17 headers":                       {withMatch(`headers: ` + repeat(17, `{type: Present, name: x-%d}`)), "spec.limits[0].match[0].headers", "must have at most 16 items"},
	"a header without a name":          {withMatch(`headers: [{type: Present}]`), "spec.limits[0].match[0].headers[0].name", "Required value"},
	"an empty header name":             {withMatch(`headers: [{type: Present, name: ""}]`), "spec.limits[0].match[0].headers[0].name", notAHeader},
	"a header name with a space":       {withMatch(`headers: [{type: Present, name: "x tenant"}]`), "spec.limits[0].match[0].headers[0].name", notAHeader},
	"a pseudo-header":                  {withMatch(`headers: [{type: Present, name: ":authority"}]`), "spec.limits[0].match[0].headers[0].name", notAHeader},
	"a header name too long":           {withMatch(`headers: [{type: Present, name: ` + strings.Repeat("a", 257) + `}]`), "spec.limits[0].match[0].headers[0].name", "may not be more than 256"},
	"a header type of paths":           {withMatch(`headers: [{type: PathPrefix, name: x, value: live}]`), "spec.limits[0].match[0].headers[0].type", `supported values: "Exact", "RegularExpression", "Present"`},
	"a header without a value":         {withMatch(`headers: [{name: x}]`), "spec.limits[0].match[0].headers[0].value", "set value, or set type to Present"},
	"a header expression without one":  {withMatch(`headers: [{type: RegularExpression, name: x}]`), "spec.limits[0].match[0].headers[0].value", "set value, or set type to Present"},
	"a present header with a value":    {withMatch(`headers: [{type: Present, name: x, value: live}]`), "spec.limits[0].match[0].headers[0].value", "remove value, or set type to Exact"},
	"an empty header value":            {withMatch(`headers: [{name: x, value: ""}]`), "spec.limits[0].match[0].headers[0].value", "should be at least 1 chars long"},
	"a header value of 1025":           {withMatch(`headers: [{name: x, value: ` + strings.Repeat("a", 1025) + `}]`), "spec.limits[0].match[0].headers[0].value", "may not be more than 1024"},
	"a fault in the last of many":      {withLimit(`match: [{methods: [GET]}, {methods: [GET], paths: [{value: /}, {value: x}]}]`), "spec.limits[0].match[1].paths[1].value", "write /orders instead of orders"},
	"a match that is not a list":       {withLimit(`match: {methods: [GET]}`), "spec.limits[0].match", "must be of type array"},
	"a key without parts":              {withLimit(`key: {}`), "spec.limits[0].key.parts", "Required value"},
	"an empty list of parts":           {withLimit(`key: {parts: []}`), "spec.limits[0].key.parts", "should have at least 1 items"},
	"five parts":                       {withLimit(`key: {parts: ` + repeat(5, `{type: Header, header: {name: x-%d}}`) + `}`), "spec.limits[0].key.parts", "must have at most 4 items"},
	"a part without a type":            {withLimit(`key: {parts: [{header: {name: x}}]}`), "spec.limits[0].key.parts[0].type", "Required value"},
	"a part type that does not exist":  {withLimit(`key: {parts: [{type: Cookie}]}`), "spec.limits[0].key.parts[0].type", `supported values: "Header", "ClientIP", "Path", "Method"`},
	"a header part without a header":   {withLimit(`key: {parts: [{type: Header}]}`), "spec.limits[0].key.parts[0].header", "set header.name"},
	"a path part with a header":        {withLimit(`key: {parts: [{type: Path, header: {name: x}}]}`), "spec.limits[0].key.parts[0].header", "remove it, or set type to Header"},
	"a header part without a name":     {withLimit(`key: {parts: [{type: Header, header: {}}]}`), "spec.limits[0].key.parts[0].header.name", "Required value"},
	"a header part with a bad name":    {withLimit(`key: {parts: [{type: Header, header: {name: "x:"}}]}`), "spec.limits[0].key.parts[0].header.name", notAHeader},
	"the client's address twice":       {withLimit(`key: {parts: [{type: ClientIP}, {type: Path}, {type: ClientIP}]}`), "spec.limits[0].key.parts", "two parts have the same source: remove one"},
	"one header in two spellings":      {withLimit(`key: {parts: [{type: Header, header: {name: X-Tenant}}, {type: Header, header: {name: x-tenant}}]}`), "spec.limits[0].key.parts", "two parts have the same source: remove one"},
	"an onMissing that does not exist": {withLimit(`key: {parts: [{type: Path}], onMissing: Ignore}`), "spec.limits[0].key.onMissing", `supported values: "Shared", "Skip", "Reject"`},
	"no keys at all":                   {withLimit(`key: {parts: [{type: Path}], maxKeys: 0}`), "spec.limits[0].key.maxKeys", "should be greater than or equal to 1"},
	"more keys than fit":               {withLimit(`key: {parts: [{type: Path}], maxKeys: 1000001}`), "spec.limits[0].key.maxKeys", "should be less than or equal to 1000000"},

	"a clientIP that says nothing":   {withSpec(`clientIP: {}`), "spec.clientIP", exactlyOne},
	"hops and networks together":     {withSpec(`clientIP: {trustedHops: 1, trustedCIDRs: [10.0.0.0/8]}`), "spec.clientIP", exactlyOne},
	"no hops":                        {withSpec(`clientIP: {trustedHops: 0}`), "spec.clientIP.trustedHops", "should be greater than or equal to 1"},
	"17 hops":                        {withSpec(`clientIP: {trustedHops: 17}`), "spec.clientIP.trustedHops", "should be less than or equal to 16"},
	"an empty list of networks":      {withSpec(`clientIP: {trustedCIDRs: []}`), "spec.clientIP.trustedCIDRs", "should have at least 1 items"},
	"65 networks":                    {withSpec(`clientIP: {trustedCIDRs: ` + repeat(65, `10.%d.0.0/16`) + `}`), "spec.clientIP.trustedCIDRs", "must have at most 64 items"},
	"a network twice":                {withSpec(`clientIP: {trustedCIDRs: [10.0.0.0/8, 10.0.0.0/8]}`), "spec.clientIP.trustedCIDRs[1]", "Duplicate value"},
	"an address in place of network": {withSpec(`clientIP: {trustedCIDRs: [10.0.0.1]}`), "spec.clientIP.trustedCIDRs[0]", notANetwork},
	"a prefix that is too long":      {withSpec(`clientIP: {trustedCIDRs: [10.0.0.0/33]}`), "spec.clientIP.trustedCIDRs[0]", notANetwork},
	"a network that is a word":       {withSpec(`clientIP: {trustedCIDRs: [private]}`), "spec.clientIP.trustedCIDRs[0]", notANetwork},
	"an IPv4 network mapped to IPv6": {withSpec(`clientIP: {trustedCIDRs: ["::ffff:10.0.0.0/104"]}`), "spec.clientIP.trustedCIDRs[0]", notANetwork},
	"bits beyond the prefix":         {withSpec(`clientIP: {trustedCIDRs: [10.1.2.3/8]}`), "spec.clientIP.trustedCIDRs[0]", "set them to zero, such as 10.0.0.0/8 for 10.1.2.3/8"},
	"bits beyond an IPv6 prefix":     {withSpec(`clientIP: {trustedCIDRs: ["fd00::1/8"]}`), "spec.clientIP.trustedCIDRs[0]", "set them to zero"},

	"an action that does not exist": {withSpec(`onStoreUnavailable: {action: FailOpen}`), "spec.onStoreUnavailable.action", `supported values: "LocalShare", "Allow", "Deny"`},
}

func TestInvalidPoliciesAreRefused(t *testing.T) {
	for name, tc := range merged(t, invalidSpecs, invalidLimits, invalidStores, invalidMatches, invalidResponses) {
		t.Run(name, func(t *testing.T) {
			requireRefused(t, newPolicy(t, tc.spec), tc)
		})
	}
}

// requireRefused creates the object and wants it refused for the one reason.
func requireRefused(t *testing.T, object *unstructured.Unstructured, want invalid) {
	t.Helper()
	got := causes(t, server.Create(t.Context(), object))
	if len(got) != 1 || got[0].Field != want.field || !strings.Contains(got[0].Message, want.message) {
		t.Errorf("it was refused with\n%swant one error about %s that says %q", list(got), want.field, want.message)
	}
}

// merged returns all entries of the tables, whose names differ.
func merged(t *testing.T, tables ...map[string]invalid) map[string]invalid {
	t.Helper()
	all := map[string]invalid{}
	for _, table := range tables {
		for name, tc := range table {
			if _, taken := all[name]; taken {
				t.Fatalf("two cases are named %q", name)
			}
			all[name] = tc
		}
	}
	return all
}

// causes returns the causes of a refusal, without the note that rules were not
// run because the schema was not met.
func causes(t *testing.T, err error) []metav1.StatusCause {
	t.Helper()
	if err == nil {
		return nil
	}
	var status *apierrors.StatusError
	if !errors.As(err, &status) || status.ErrStatus.Reason != metav1.StatusReasonInvalid {
		t.Fatalf("the server failed with %v, want a refusal", err)
	}
	var list []metav1.StatusCause
	for _, cause := range status.ErrStatus.Details.Causes {
		if cause.Field != "<nil>" {
			list = append(list, cause)
		}
	}
	return list
}

func list(causes []metav1.StatusCause) string {
	var b strings.Builder
	for _, cause := range causes {
		fmt.Fprintf(&b, "  %s: %s\n", cause.Field, cause.Message)
	}
	return b.String()
}
