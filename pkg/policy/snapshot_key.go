package policy

// A Key splits a limit into one counter for each value of its parts.
type Key struct {
	Parts     []KeyPart `json:"parts"` // 1 to 4
	OnMissing OnMissing `json:"onMissing"`
	MaxKeys   int       `json:"maxKeys"` // most values a sidecar tracks; the rest share one counter
}

// KeySource names what a key part is taken from.
type KeySource string

// The key sources.
const (
	HeaderKey   KeySource = "Header"
	ClientIPKey KeySource = "ClientIP" // IPv6 addresses count by their /64
	PathKey     KeySource = "Path"
	MethodKey   KeySource = "Method"
	HostKey     KeySource = "Host" // in lower case, without a port

	QueryParamKey KeySource = "QueryParam" // the value of a parameter, missing when it has several that differ
	JWTClaimKey   KeySource = "JWTClaim"   // of a token that nobody has verified
	ExpressionKey KeySource = "Expression" // the value of an expression
	DescriptorKey KeySource = "Descriptor" // the value of an entry; HTTP requests have none
)

// A KeyPart is one component of a key.
type KeyPart struct {
	Type   KeySource `json:"type"`
	Header string    `json:"header,omitempty"` // of HeaderKey; of JWTClaimKey: what carries the token
	// Name is the parameter of QueryParamKey, the path of the claim of JWTClaimKey, and
	// the key of the entry of DescriptorKey.
	Name       string `json:"name,omitempty"`
	Expression string `json:"expression,omitempty"` // of ExpressionKey: a string
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
