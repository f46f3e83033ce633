package v1alpha1_test

import "strings"

// aMatch has every field that HTTP requests match, as often as the schema allows.
var aMatch = `hosts: ` + repeat(16, `"*.h%d.example.com"`) +
	`, queryParams: ` + repeat(16, `{name: q%d, value: live}`) +
	`, sourceCIDRs: ` + repeat(16, `10.%d.0.0/16`) +
	`, jwtClaims: ` + repeat(16, `{claim: c%d, value: live, verification: Verified, provider: accounts}`) +
	`, grpc: {service: shop.v1.Orders, method: Create}, expression: "` + strings.Repeat(" ", 1020) + `true"`

// withProvider returns a policy with a provider of tokens.
func withProvider(fields string) string {
	return withSpec(`jwtProviders: [{name: accounts, issuer: accounts, ` + fields + `}]`)
}

func keyOf(parts string) string { return withLimit(`key: {parts: [` + parts + `]}`) }

var validMatches = map[string]string{
	"eight matches of 16 of every other thing": withLimit(`match: ` + repeat(8, `{`+strings.ReplaceAll(aMatch, "%d", "0")+`}`)),
	"a host by address":                        withMatch(`hosts: ["192.0.2.1", "fd00::1", LOCALHOST]`),
	"a parameter by expression":                withMatch(`queryParams: [{type: RegularExpression, name: "a b", value: "[?]"}, {type: Present, name: c}]`),
	"a claim in another header":                withMatch(`jwtClaims: [{header: x-token, claim: realm.roles, type: Present}, {claim: "https://example.com/plan", value: gold}]`),
	"a service":                                withMatch(`grpc: {service: Orders}`),
	"16 descriptors":                           withMatch(`descriptors: ` + repeat(16, `{key: k%d, value: v}`)),
	"a descriptor of any value":                withLimit(`exempt: [{descriptors: [{key: k}]}]`),
	"parts of every other type":                keyOf(`{type: Host}, {type: QueryParam, queryParam: {name: q}}, {type: JWTClaim, jwtClaim: {claim: sub}}, {type: Expression, expression: "request.method"}`),
	"descriptors as parts":                     keyOf(`{type: Descriptor, descriptor: {key: a}}, {type: Descriptor, descriptor: {key: b}}`),
	"two claims":                               keyOf(`{type: JWTClaim, jwtClaim: {claim: sub}}, {type: JWTClaim, jwtClaim: {claim: sub, header: x-token}}`),
	"a tenant by claim":                        withLimit(`fairness: {tenant: {type: JWTClaim, jwtClaim: {claim: org}}}`),
	"a verified claim":                         withMatch(`jwtClaims: [{claim: sub, type: Present, verification: Verified, provider: accounts}]`),
	"a verified part":                          keyOf(`{type: JWTClaim, jwtClaim: {claim: sub, verification: Verified, provider: accounts}}`),
	"keys at a URL":                            withProvider(`audiences: [a, b], algorithms: [RS256, ES512], clockSkew: 0s, jwks: {url: "https://accounts.example.com:8443/keys?tenant=a@b"}`),
	"keys at an address":                       withProvider(`jwks: {url: "http://[fd00::1]/keys"}`),
	"keys in a Secret":                         withProvider(`clockSkew: 5m, jwks: {secretRef: {name: keys}}`),
	"keys in the policy":                       withProvider(`jwks: {inline: "{}"}`),
	"a response of all there is":               withSpec(`response: {headers: [IETF, XRateLimit], quotaFields: Always, retryAfterJitterPercent: 100, statusCode: 503, grpcStatus: Unavailable, body: {type: Text}}`),
	"a response of nothing":                    withSpec(`response: {headers: [], quotaFields: OnRejection, retryAfterJitterPercent: 0, body: {type: None}}`),
}

var invalidMatches = map[string]invalid{
	"a host with a port":              {withMatch(`hosts: ["example.com/"]`), "spec.limits[0].match[0].hosts[0]", "write a name without scheme, port and path"},
	"an empty host":                   {withMatch(`hosts: [""]`), "spec.limits[0].match[0].hosts[0]", "write a name without scheme, port and path"},
	"a wildcard in the middle":        {withMatch(`hosts: ["a.*.com"]`), "spec.limits[0].match[0].hosts[0]", "or *.example.com for all below it"},
	"one host twice":                  {withMatch(`hosts: [a, a]`), "spec.limits[0].match[0].hosts[1]", "Duplicate value"},
	"17 hosts":                        {withMatch(`hosts: ` + repeat(17, `h%d`)), "spec.limits[0].match[0].hosts", "must have at most 16 items"},
	"a parameter without a name":      {withMatch(`queryParams: [{value: a}]`), "spec.limits[0].match[0].queryParams[0].name", "Required value"},
	"a parameter without a value":     {withMatch(`queryParams: [{name: a}]`), "spec.limits[0].match[0].queryParams[0].value", "set value, or set type to Present"},
	"a present parameter with one":    {withMatch(`queryParams: [{name: a, type: Present, value: b}]`), "spec.limits[0].match[0].queryParams[0].value", "remove value, or set type to Exact"},
	"a parameter by prefix":           {withMatch(`queryParams: [{name: a, type: PathPrefix, value: b}]`), "spec.limits[0].match[0].queryParams[0].type", `supported values: "Exact", "RegularExpression", "Present"`},
	"a source that is an address":     {withMatch(`sourceCIDRs: ["10.0.0.1"]`), "spec.limits[0].match[0].sourceCIDRs[0]", "write an address and a prefix length"},
	"a source with bits beyond":       {withMatch(`sourceCIDRs: ["10.0.0.1/8"]`), "spec.limits[0].match[0].sourceCIDRs[0]", "set them to zero"},
	"a claim without a path":          {withMatch(`jwtClaims: [{value: a}]`), "spec.limits[0].match[0].jwtClaims[0].claim", "Required value"},
	"a claim that ends in a dot":      {withMatch(`jwtClaims: [{claim: "realm.", value: a}]`), "spec.limits[0].match[0].jwtClaims[0].claim", "remove the dot"},
	"a claim without a value":         {withMatch(`jwtClaims: [{claim: sub}]`), "spec.limits[0].match[0].jwtClaims[0].value", "set value, or set type to Present"},
	"a token in a bad header":         {withMatch(`jwtClaims: [{claim: sub, value: a, header: "x:"}]`), "spec.limits[0].match[0].jwtClaims[0].header", notAHeader},
	"a verified claim of nobody":      {withMatch(`jwtClaims: [{claim: a, value: b, verification: Verified}]`), "spec.limits[0].match[0].jwtClaims[0].provider", "set provider to the name of an entry of spec.jwtProviders"},
	"an unverified claim of somebody": {withMatch(`jwtClaims: [{claim: a, value: b, provider: accounts}]`), "spec.limits[0].match[0].jwtClaims[0].provider", "provider is read only with verification Verified"},
	"a verified part of nobody":       {keyOf(`{type: JWTClaim, jwtClaim: {claim: a, verification: Verified}}`), "spec.limits[0].key.parts[0].jwtClaim.provider", "set provider to the name of an entry of spec.jwtProviders"},
	"an unverified part of somebody":  {keyOf(`{type: JWTClaim, jwtClaim: {claim: a, provider: accounts}}`), "spec.limits[0].key.parts[0].jwtClaim.provider", "provider is read only with verification Verified"},
	"another verification":            {keyOf(`{type: JWTClaim, jwtClaim: {claim: a, verification: None}}`), "spec.limits[0].key.parts[0].jwtClaim.verification", `supported values: "Unverified", "Verified"`},
	"a provider with a bad name":      {withSpec(`jwtProviders: [{name: A, issuer: a, jwks: {inline: a}}]`), "spec.jwtProviders[0].name", "such as accounts"},
	"a provider without an issuer":    {withSpec(`jwtProviders: [{name: a, jwks: {inline: a}}]`), "spec.jwtProviders[0].issuer", "Required value"},
	"a provider without keys":         {withSpec(`jwtProviders: [{name: a, issuer: a}]`), "spec.jwtProviders[0].jwks", "Required value"},
	"five providers":                  {withSpec(`jwtProviders: ` + repeat(5, `{name: p%d, issuer: a, jwks: {inline: a}}`)), "spec.jwtProviders", "must have at most 4 items"},
	"one provider twice":              {withSpec(`jwtProviders: [{name: a, issuer: a, jwks: {inline: a}}, {name: a, issuer: b, jwks: {inline: a}}]`), "spec.jwtProviders[1]", "Duplicate value"},
	"a shared secret":                 {withProvider(`algorithms: [HS256], jwks: {inline: a}`), "spec.jwtProviders[0].algorithms[0]", "Unsupported value"},
	"no algorithm at all":             {withProvider(`algorithms: [none], jwks: {inline: a}`), "spec.jwtProviders[0].algorithms[0]", "Unsupported value"},
	"no algorithms":                   {withProvider(`algorithms: [], jwks: {inline: a}`), "spec.jwtProviders[0].algorithms", "should have at least 1 items"},
	"no audiences":                    {withProvider(`audiences: [], jwks: {inline: a}`), "spec.jwtProviders[0].audiences", "should have at least 1 items"},
	"a skew of more than 5 minutes":   {withProvider(`clockSkew: 301s, jwks: {inline: a}`), "spec.jwtProviders[0].clockSkew", "not a duration from 0s to 5m"},
	"keys in two places":              {withProvider(`jwks: {inline: a, secretRef: {name: a}}`), "spec.jwtProviders[0].jwks", "set exactly one of url, secretRef and inline"},
	"keys in no place":                {withProvider(`jwks: {}`), "spec.jwtProviders[0].jwks", "set exactly one of url, secretRef and inline"},
	"keys of a file":                  {withProvider(`jwks: {url: "file:///keys"}`), "spec.jwtProviders[0].jwks.url", "write https, a host and a path"},
	"keys with a password":            {withProvider(`jwks: {url: "https://a:b@accounts.example.com/keys"}`), "spec.jwtProviders[0].jwks.url", "without a user"},
	"keys at a fragment":              {withProvider(`jwks: {url: "https://accounts.example.com/keys#a"}`), "spec.jwtProviders[0].jwks.url", "without a fragment"},
	"keys with a space":               {withProvider(`jwks: {url: "https://accounts.example.com/ keys"}`), "spec.jwtProviders[0].jwks.url", "write https, a host and a path"},
	"too many keys":                   {withProvider(`jwks: {inline: "` + strings.Repeat("a", 16385) + `"}`), "spec.jwtProviders[0].jwks.inline", "may not be more than 16384"},
	"a method without a service":      {withMatch(`grpc: {method: Create}`), "spec.limits[0].match[0].grpc.service", "Required value"},
	"a service with its path":         {withMatch(`grpc: {service: /shop.Orders}`), "spec.limits[0].match[0].grpc.service", "write package and service, without slashes"},
	"a method with its service":       {withMatch(`grpc: {service: shop.Orders, method: shop.Create}`), "spec.limits[0].match[0].grpc.method", "write it alone"},
	"an expression of 1025":           {withMatch(`expression: "` + strings.Repeat("a", 1025) + `"`), "spec.limits[0].match[0].expression", "may not be more than 1024"},
	"a descriptor without a key":      {withMatch(`descriptors: [{value: a}]`), "spec.limits[0].match[0].descriptors[0].key", "Required value"},
	"a descriptor of a request":       {withMatch(`methods: [GET], descriptors: [{key: a}]`), "spec.limits[0].match[0].descriptors", "move descriptors to an entry of their own"},
	"a descriptor and an expression":  {withMatch(`expression: "true", descriptors: [{key: a}]`), "spec.limits[0].match[0].descriptors", "move descriptors to an entry of their own"},
	"a parameter part of nothing":     {keyOf(`{type: QueryParam}`), "spec.limits[0].key.parts[0].queryParam", "set queryParam.name"},
	"a claim part of nothing":         {keyOf(`{type: JWTClaim}`), "spec.limits[0].key.parts[0].jwtClaim", "set jwtClaim.claim"},
	"an expression part of nothing":   {keyOf(`{type: Expression}`), "spec.limits[0].key.parts[0].expression", "set expression"},
	"a descriptor part of nothing":    {keyOf(`{type: Descriptor}`), "spec.limits[0].key.parts[0].descriptor", "set descriptor.key"},
	"a host part with a parameter":    {keyOf(`{type: Host, queryParam: {name: a}}`), "spec.limits[0].key.parts[0].queryParam", "remove it, or set type to QueryParam"},
	"a host part with a claim":        {keyOf(`{type: Host, jwtClaim: {claim: a}}`), "spec.limits[0].key.parts[0].jwtClaim", "remove it, or set type to JWTClaim"},
	"a host part with an expression":  {keyOf(`{type: Host, expression: a}`), "spec.limits[0].key.parts[0].expression", "remove it, or set type to Expression"},
	"a host part with a descriptor":   {keyOf(`{type: Host, descriptor: {key: a}}`), "spec.limits[0].key.parts[0].descriptor", "remove it, or set type to Descriptor"},
	"one parameter twice":             {keyOf(`{type: QueryParam, queryParam: {name: a}}, {type: QueryParam, queryParam: {name: a}}`), "spec.limits[0].key.parts", "two parts have the same source"},
	"one claim in two spellings":      {keyOf(`{type: JWTClaim, jwtClaim: {claim: a, header: X}}, {type: JWTClaim, jwtClaim: {claim: a, header: x}}`), "spec.limits[0].key.parts", "two parts have the same source"},
	"one expression twice":            {keyOf(`{type: Expression, expression: "request.path"}, {type: Expression, expression: "request.path"}`), "spec.limits[0].key.parts", "two parts have the same source"},
	"one entry of a descriptor twice": {keyOf(`{type: Descriptor, descriptor: {key: a}}, {type: Descriptor, descriptor: {key: a}}`), "spec.limits[0].key.parts", "two parts have the same source"},
}

var invalidResponses = map[string]invalid{
	"a family of fields that is not known": {withSpec(`response: {headers: [RateLimit]}`), "spec.response.headers[0]", `supported values: "IETF", "XRateLimit"`},
	"one family of fields twice":           {withSpec(`response: {headers: [IETF, IETF]}`), "spec.response.headers[1]", "Duplicate value"},
	"fields at a time that is not known":   {withSpec(`response: {quotaFields: Never}`), "spec.response.quotaFields", `supported values: "OnRejection", "NearLimit", "Always"`},
	"a jitter of more than the wait":       {withSpec(`response: {retryAfterJitterPercent: 101}`), "spec.response.retryAfterJitterPercent", "should be less than or equal to 100"},
	"a jitter below nothing":               {withSpec(`response: {retryAfterJitterPercent: -1}`), "spec.response.retryAfterJitterPercent", "should be greater than or equal to 0"},
	"a refusal with another status":        {withSpec(`response: {statusCode: 403}`), "spec.response.statusCode", `supported values: "429", "503"`},
	"a gRPC status by its number":          {withSpec(`response: {grpcStatus: "8"}`), "spec.response.grpcStatus", `supported values: "ResourceExhausted", "Unavailable"`},
	"a body that is not known":             {withSpec(`response: {body: {type: HTML}}`), "spec.response.body.type", `supported values: "ProblemJSON", "Text", "None"`},
}
