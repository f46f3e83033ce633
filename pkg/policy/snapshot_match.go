package policy

// A Match selects requests. Every field that is set must match.
type Match struct {
	Methods []string      `json:"methods,omitempty"` // one of
	Paths   []PathMatch   `json:"paths,omitempty"`   // one of
	Headers []HeaderMatch `json:"headers,omitempty"` // all of

	Hosts       []string     `json:"hosts,omitempty"`       // one of: a host, or *.suffix for all below it; in lower case, without a port
	QueryParams []QueryMatch `json:"queryParams,omitempty"` // all of
	SourceCIDRs []string     `json:"sourceCIDRs,omitempty"` // one of: networks of the client's address; of a pool that of the TCP peer
	JWTClaims   []ClaimMatch `json:"jwtClaims,omitempty"`   // all of
	GRPC        *GRPCMatch   `json:"grpc,omitempty"`
	// Expression is in the Common Expression Language, and true or false. Where it has
	// no value for a request it counts as true in Limit.Match, and as false elsewhere.
	Expression string `json:"expression,omitempty"`

	// Descriptors, all of them, match the calls that NewDescriptor stands for, which
	// have nothing else that could match; so no other field may be set.
	Descriptors []DescriptorMatch `json:"descriptors,omitempty"`
}

// MatchType says how a value is compared.
type MatchType string

// The match types.
const (
	Exact             MatchType = "Exact"
	PathPrefix        MatchType = "PathPrefix"        // by whole path segments
	RegularExpression MatchType = "RegularExpression" // RE2, the whole value
	Present           MatchType = "Present"           // any value
)

// A PathMatch compares the request's path: Exact, PathPrefix or RegularExpression.
type PathMatch struct {
	Type  MatchType `json:"type"`
	Value string    `json:"value"`
}

// A HeaderMatch compares a header: Exact, RegularExpression or Present.
type HeaderMatch struct {
	Type  MatchType `json:"type"`
	Name  string    `json:"name"`
	Value string    `json:"value,omitempty"`
}

// A DescriptorMatch compares an entry of a descriptor.
type DescriptorMatch struct {
	Key   string `json:"key"`
	Value string `json:"value,omitempty"` // empty: any value
}

// A QueryMatch compares a decoded parameter of the query: Exact, RegularExpression or
// Present.
type QueryMatch struct {
	Type  MatchType `json:"type"`
	Name  string    `json:"name"`
	Value string    `json:"value,omitempty"`
}

// A ClaimMatch compares a claim of a JSON Web Token: Exact, RegularExpression or Present. If
// the claim is a list, one entry has to match.
type ClaimMatch struct {
	Type   MatchType `json:"type"`
	Header string    `json:"header"` // that carries the token
	Claim  string    `json:"claim"`  // path, by dots
	Value  string    `json:"value,omitempty"`
	// Provider verifies the token; one that is not verified has no claims. Empty: nobody
	// verifies it.
	Provider string `json:"provider,omitempty"`
}

// A GRPCMatch compares the path of a call: the service by its full name, and the
// method, or every one when it is empty.
type GRPCMatch struct {
	Service string `json:"service"`
	Method  string `json:"method,omitempty"`
}

// A Key splits a limit into one counter for each value of its parts.
type Key struct {
	Parts     []KeyPart `json:"parts"` // 1 to 4
	OnMissing OnMissing `json:"onMissing"`
	MaxKeys   int       `json:"maxKeys"` // most values a sidecar tracks; the rest share counters
}

// sharedPart is how many values a sidecar tracks for each counter that others share. A
// client that makes up values can have that multiple of them admitted, and has to spend
// that fraction until it has shut out all others.
const sharedPart = 8

// SharedKeys returns how many counters the values share that a sidecar does not track, and
// those that their store has no room for.
func (k *Key) SharedKeys() int { return max(1, k.MaxKeys/sharedPart) }

// KeySource names what a key part is taken from.
type KeySource string

// The key sources.
const (
	HeaderKey   KeySource = "Header"
	ClientIPKey KeySource = "ClientIP" // IPv6 addresses count by their /64
	PathKey     KeySource = "Path"
	MethodKey   KeySource = "Method"
	HostKey     KeySource = "Host" // in lower case, without a port

	QueryParamKey   KeySource = "QueryParam"   // the value of a parameter, missing when it has several that differ
	JWTClaimKey     KeySource = "JWTClaim"     // of a token, which only a provider verifies
	PeerIdentityKey KeySource = "PeerIdentity" // the URI of the caller's certificate, from a proxy that ClientIP trusts
	ExpressionKey   KeySource = "Expression"   // the value of an expression
	DescriptorKey   KeySource = "Descriptor"   // the value of an entry; HTTP requests have none
)

// A KeyPart is one component of a key.
type KeyPart struct {
	Type   KeySource `json:"type"`
	Header string    `json:"header,omitempty"` // of HeaderKey; of JWTClaimKey: what carries the token
	// Name is the parameter of QueryParamKey, the path of the claim of JWTClaimKey, and
	// the key of the entry of DescriptorKey.
	Name       string `json:"name,omitempty"`
	Expression string `json:"expression,omitempty"` // of ExpressionKey: a string
	// Provider of JWTClaimKey verifies the token; a claim of one that is not verified is
	// missing. Empty: nobody verifies it.
	Provider string `json:"provider,omitempty"`
}

// OnMissing says what happens to a request that lacks a part of the key. One that has
// several values of a part is shared where to lack it would be skipped.
type OnMissing string

// The ways to treat requests without the key.
const (
	Shared OnMissing = "Shared" // all of them share one counter
	Skip   OnMissing = "Skip"   // the limit does not apply
	Reject OnMissing = "Reject" // refuse with 400
)
