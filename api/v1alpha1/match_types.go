package v1alpha1

// Match selects requests. Every field that is set must match.
// +kubebuilder:validation:XValidation:rule="has(self.methods) || has(self.paths) || has(self.headers) || has(self.hosts) || has(self.queryParams) || has(self.sourceCIDRs) || has(self.jwtClaims) || has(self.grpc) || has(self.descriptors) || has(self.expression)",message="it names no request: set at least one of methods, paths, headers, hosts, queryParams, sourceCIDRs, jwtClaims, grpc, descriptors and expression, or remove it (the list, too, when nothing else is in it)"
// +kubebuilder:validation:XValidation:rule="!has(self.descriptors) || !(has(self.methods) || has(self.paths) || has(self.headers) || has(self.hosts) || has(self.queryParams) || has(self.sourceCIDRs) || has(self.jwtClaims) || has(self.grpc) || has(self.expression))",fieldPath=".descriptors",reason=FieldValueForbidden,message="a descriptor is not an HTTP request, so nothing matches this and the other fields: move descriptors to an entry of their own"
type Match struct {
	// methods match when the request's method is one of them. At most 16.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=16
	Methods []Method `json:"methods,omitempty"`

	// paths match when one of them matches the request's path, without its query,
	// in one of the ways in which an app may read it: as it was sent, decoded,
	// without what follows a semicolon, without dot segments and repeated slashes.
	// To be exempt it has to match in all of them. At most 16.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=16
	Paths []PathMatch `json:"paths,omitempty"`

	// headers match when all of them match. At most 16.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=16
	Headers []HeaderMatch `json:"headers,omitempty"`

	// hosts match when one of them is the host that the request is sent to,
	// whatever its port. *.example.com is every host below example.com, not that
	// one itself. At most 16.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=16
	Hosts []HostMatch `json:"hosts,omitempty"`

	// queryParams match when all of them match. At most 16.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=16
	QueryParams []QueryParamMatch `json:"queryParams,omitempty"`

	// sourceCIDRs match when the client's address, which spec.clientIP says how to
	// find, is in one of the networks. In a ConcurrencyPool it is the address of
	// the TCP peer. At most 16.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=16
	SourceCIDRs []CIDR `json:"sourceCIDRs,omitempty"`

	// jwtClaims match when all of them match the claims of a JSON Web Token of the
	// request. Unless verification is Verified, the sender of a request chooses
	// its claims, if nothing in front of the pods refuses tokens that were not
	// issued. So never exempt requests by a claim that nobody verifies. At most
	// 16.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=16
	JWTClaims []JWTClaimMatch `json:"jwtClaims,omitempty"`

	// grpc matches the calls of a gRPC service.
	// +optional
	GRPC *GRPCMatch `json:"grpc,omitempty"`

	// descriptors match when all of them match the descriptor of a call of Envoy's
	// rate limit service. HTTP requests have no descriptor, so no other field may
	// be set beside them. A ConcurrencyPool cannot have them. At most 16.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=16
	Descriptors []DescriptorMatch `json:"descriptors,omitempty"`

	// expression matches when it is true. It is of the Common Expression Language,
	// of at most 1024 characters, over request.method, request.path, request.host
	// (in lower case, without port), request.clientIP, request.headers (by name in
	// lower case; the values of one name joined by a comma and a space),
	// request.query (the first value of each name) and request.jwt (claims of the
	// bearer token, not verified), as in request.headers['x-plan'] != 'gold'.
	// Where a request lacks what the expression reads, or is too large to evaluate
	// it, it has no value: then a limit's match takes the request in, while
	// exempt, and every list of a ConcurrencyPool, leaves it out. 'x-plan' in
	// request.headers and has(request.jwt.plan) say whether there is something to
	// read.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=1024
	Expression string `json:"expression,omitempty"`
}

// Method is an HTTP method in upper case.
// +kubebuilder:validation:MaxLength=32
// +kubebuilder:validation:XValidation:rule="self.matches('^[A-Z][-_A-Z0-9]*$')",message="not a method: write it in upper case, such as GET or POST"
type Method string

// PathMatch compares the request's path.
// +kubebuilder:validation:XValidation:rule="self.type == 'RegularExpression' || self.value.size() == 0 || self.value.startsWith('/')",fieldPath=".value",message="a path starts with a slash: write /orders instead of orders, or set type to RegularExpression"
// +kubebuilder:validation:XValidation:rule="self.type == 'RegularExpression' || !self.value.matches('[?#]')",fieldPath=".value",message="a path has no query and no fragment: remove everything from ? or # on"
type PathMatch struct {
	// type says how value is compared.
	// PathPrefix, the default, matches whole path segments: /v1 matches /v1 and
	// /v1/orders, not /v10.
	// Exact matches the very same path.
	// RegularExpression matches when the RE2 expression matches the whole path.
	// +optional
	// +kubebuilder:default=PathPrefix
	Type PathMatchType `json:"type,omitempty"`

	// value is the path, or the expression, of at most 1024 characters.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=1024
	Value string `json:"value"`
}

// PathMatchType says how a path is compared.
// +kubebuilder:validation:Enum=PathPrefix;Exact;RegularExpression
type PathMatchType string

// The types of a path match.
const (
	PathPrefix            PathMatchType = "PathPrefix"
	PathExact             PathMatchType = "Exact"
	PathRegularExpression PathMatchType = "RegularExpression"
)

// HeaderMatch compares a request header.
// +kubebuilder:validation:XValidation:rule="self.type == 'Present' || has(self.value)",fieldPath=".value",reason=FieldValueRequired,message="type Exact and type RegularExpression compare a value: set value, or set type to Present to match any value"
// +kubebuilder:validation:XValidation:rule="self.type != 'Present' || !has(self.value)",fieldPath=".value",reason=FieldValueForbidden,message="type Present matches any value: remove value, or set type to Exact"
type HeaderMatch struct {
	// type says how value is compared.
	// Exact, the default, matches when the header has the very same value.
	// RegularExpression matches when the RE2 expression matches the whole value.
	// Present matches when the request has the header, whatever its value.
	// +optional
	// +kubebuilder:default=Exact
	Type HeaderMatchType `json:"type,omitempty"`

	// name of the header, in any case.
	// +required
	Name HeaderName `json:"name"`

	// value to compare with, or the expression, of at most 1024 characters. Unset
	// for type Present.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=1024
	Value string `json:"value,omitempty"`
}

// HeaderName is the name of a request header, in any case.
// +kubebuilder:validation:MaxLength=256
// +kubebuilder:validation:XValidation:rule="self.matches('^[-!#$%&*+.^_|~0-9A-Za-z]+$')",message="not a header name: use letters, digits and dashes, such as x-tenant"
type HeaderName string

// HeaderMatchType says how a header is compared.
// +kubebuilder:validation:Enum=Exact;RegularExpression;Present
type HeaderMatchType string

// The types of a header match.
const (
	HeaderExact             HeaderMatchType = "Exact"
	HeaderRegularExpression HeaderMatchType = "RegularExpression"
	HeaderPresent           HeaderMatchType = "Present"
)
