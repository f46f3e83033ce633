package policy

import "github.com/weir-dev/weir/pkg/limiter"

// A Snapshot is everything one sidecar enforces.
type Snapshot struct {
	Cluster  string   `json:"cluster"`            // prefix of every counter's name
	Policies []Policy `json:"policies,omitempty"` // ordered by namespace and name
}

// A Policy is one RateLimitPolicy, resolved. A request that several limits or
// policies match is admitted only when all of them admit it.
type Policy struct {
	Namespace  string `json:"namespace"`
	Name       string `json:"name"`
	Generation int64  `json:"generation"` // orders the versions of the name; stores refuse lower ones

	Mode        Mode        `json:"mode"`
	Store       Store       `json:"store"`
	Consistency Consistency `json:"consistency"`

	// OnStoreUnavailable decides requests when credits in hand are spent and the
	// store does not answer.
	OnStoreUnavailable Action `json:"onStoreUnavailable"`

	ClientIP ClientIP `json:"clientIP,omitzero"`
	Limits   []Limit  `json:"limits"` // 1 to 32, in the order of the object
}

// Mode says what a refusal does.
type Mode string

// The modes of a policy.
const (
	Enforce Mode = "Enforce" // refuse the request
	Shadow  Mode = "Shadow"  // count the refusal and let the request pass
)

// StoreType names a kind of L2 store.
type StoreType string

// The stores.
const (
	ControllerStore StoreType = "Controller" // the leading controller's memory, reached over the fleet stream
	RedisStore      StoreType = "Redis"
)

// Store says where the counters of a policy are kept.
type Store struct {
	Type    StoreType `json:"type"`
	Address string    `json:"address,omitempty"` // host:port of RedisStore
}

// ConsistencyMode says how often the store is asked.
type ConsistencyMode string

// The consistency modes.
const (
	Leased ConsistencyMode = "Leased" // once a batch; window-coupled credits, so still exact
	Strict ConsistencyMode = "Strict" // once a request
)

// Consistency says how a sidecar uses the store.
type Consistency struct {
	Mode  ConsistencyMode `json:"mode"`
	Batch int64           `json:"batch,omitempty"` // Leased: units of one lease, at least 1
}

// Action is what a sidecar does while a store is unavailable.
type Action string

// The failure actions.
const (
	LocalShare Action = "LocalShare" // from the next window on, enforce limit / holders alone
	Allow      Action = "Allow"      // admit
	Deny       Action = "Deny"       // refuse
)

// ClientIP says which hop's word on the client's address is trusted. With
// neither field set only the TCP peer is.
type ClientIP struct {
	TrustedHops  int      `json:"trustedHops,omitempty"`  // proxies in front of the pod, counted from the pod outwards
	TrustedCIDRs []string `json:"trustedCIDRs,omitempty"` // networks of proxies in front of the pod
}

// A Limit is one named limit of a policy.
type Limit struct {
	Name  string         `json:"name"`
	Match []Match        `json:"match,omitempty"` // one must match; none means every request
	Key   *Key           `json:"key,omitempty"`   // nil: one counter for the whole fleet
	Rates []limiter.Rate `json:"rates"`           // 1 to limiter.MaxRates, all must admit
}

// A Match selects requests. Every field that is set must match.
type Match struct {
	Methods []string      `json:"methods,omitempty"` // one of
	Paths   []PathMatch   `json:"paths,omitempty"`   // one of
	Headers []HeaderMatch `json:"headers,omitempty"` // all of
}

// MatchType says how a value is compared.
type MatchType string

// The match types.
const (
	Exact             MatchType = "Exact"
	PathPrefix        MatchType = "PathPrefix"        // by whole path segments
	RegularExpression MatchType = "RegularExpression" // RE2, the whole value
	Present           MatchType = "Present"           // a header with any value
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
)

// A KeyPart is one component of a key.
type KeyPart struct {
	Type   KeySource `json:"type"`
	Header string    `json:"header,omitempty"` // of HeaderKey
}

// OnMissing says what happens to a request that lacks a part of the key.
type OnMissing string

// What happens to requests without the key.
const (
	Shared OnMissing = "Shared" // all of them share one counter
	Skip   OnMissing = "Skip"   // the limit does not apply
	Reject OnMissing = "Reject" // refuse with 400
)
