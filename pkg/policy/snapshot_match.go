package policy

// A Match selects requests. Every field that is set must match.
type Match struct {
	Methods []string      `json:"methods,omitempty"` // one of
	Paths   []PathMatch   `json:"paths,omitempty"`   // one of
	Headers []HeaderMatch `json:"headers,omitempty"` // all of

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

// A DescriptorMatch compares an entry of a descriptor.
type DescriptorMatch struct {
	Key   string `json:"key"`
	Value string `json:"value,omitempty"` // empty: any value
}
