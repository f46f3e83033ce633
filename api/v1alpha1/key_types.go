package v1alpha1

// Key splits a limit into one counter for each value of its parts.
type Key struct {
	// parts are 1 to 4 sources whose values together name the counter.
	// +required
	// +listType=atomic
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=4
	// +kubebuilder:validation:XValidation:rule="self.size() == 1 || self.all(a, self.exists_one(b, a.type == b.type && (has(a.header) ? a.header.name.lowerAscii() : '') == (has(b.header) ? b.header.name.lowerAscii() : '') && (has(a.queryParam) ? a.queryParam.name : '') == (has(b.queryParam) ? b.queryParam.name : '') && (has(a.jwtClaim) ? [a.jwtClaim.claim, a.jwtClaim.header.lowerAscii()] : []) == (has(b.jwtClaim) ? [b.jwtClaim.claim, b.jwtClaim.header.lowerAscii()] : []) && (has(a.descriptor) ? a.descriptor.key : '') == (has(b.descriptor) ? b.descriptor.key : '') && (has(a.expression) ? a.expression : '') == (has(b.expression) ? b.expression : '')))",message="two parts have the same source: remove one"
	Parts []KeyPart `json:"parts"`

	// onMissing says what happens to a request that lacks one of the parts, or has
	// several values of it that differ: apps do not agree on which of them counts.
	// Shared, the default, counts all such requests on one counter.
	// Skip lets the limit ignore those that lack one, and counts the others as
	// Shared.
	// Reject refuses them with 400.
	// +optional
	// +kubebuilder:default=Shared
	OnMissing OnMissing `json:"onMissing,omitempty"`

	// maxKeys is how many values one sidecar tracks, 1 to 1000000, by default
	// 100000.
	// It bounds memory: values beyond it share counters, one for each 8 of
	// maxKeys.
	// +optional
	// +kubebuilder:default=100000
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=1000000
	MaxKeys int32 `json:"maxKeys,omitempty"`
}

// KeyPart is one source of a key.
// +kubebuilder:validation:XValidation:rule="self.type != 'Header' || has(self.header)",fieldPath=".header",reason=FieldValueRequired,message="type Header needs the header to take the value from: set header.name"
// +kubebuilder:validation:XValidation:rule="!has(self.header) || self.type == 'Header'",fieldPath=".header",reason=FieldValueForbidden,message="header is read only with type Header: remove it, or set type to Header"
// +kubebuilder:validation:XValidation:rule="self.type != 'QueryParam' || has(self.queryParam)",fieldPath=".queryParam",reason=FieldValueRequired,message="type QueryParam needs the parameter to take the value from: set queryParam.name"
// +kubebuilder:validation:XValidation:rule="!has(self.queryParam) || self.type == 'QueryParam'",fieldPath=".queryParam",reason=FieldValueForbidden,message="queryParam is read only with type QueryParam: remove it, or set type to QueryParam"
// +kubebuilder:validation:XValidation:rule="self.type != 'JWTClaim' || has(self.jwtClaim)",fieldPath=".jwtClaim",reason=FieldValueRequired,message="type JWTClaim needs the claim to take the value from: set jwtClaim.claim"
// +kubebuilder:validation:XValidation:rule="!has(self.jwtClaim) || self.type == 'JWTClaim'",fieldPath=".jwtClaim",reason=FieldValueForbidden,message="jwtClaim is read only with type JWTClaim: remove it, or set type to JWTClaim"
// +kubebuilder:validation:XValidation:rule="self.type != 'Expression' || has(self.expression)",fieldPath=".expression",reason=FieldValueRequired,message="type Expression needs the expression whose value counts: set expression"
// +kubebuilder:validation:XValidation:rule="!has(self.expression) || self.type == 'Expression'",fieldPath=".expression",reason=FieldValueForbidden,message="expression is read only with type Expression: remove it, or set type to Expression"
// +kubebuilder:validation:XValidation:rule="self.type != 'Descriptor' || has(self.descriptor)",fieldPath=".descriptor",reason=FieldValueRequired,message="type Descriptor needs the entry to take the value from: set descriptor.key"
// +kubebuilder:validation:XValidation:rule="!has(self.descriptor) || self.type == 'Descriptor'",fieldPath=".descriptor",reason=FieldValueForbidden,message="descriptor is read only with type Descriptor: remove it, or set type to Descriptor"
type KeyPart struct {
	// type names what the value is taken from.
	// Header takes the value of a request header.
	// ClientIP takes the client's address; IPv6 addresses count by their /64.
	// Path takes the request's path without its query.
	// Method takes the request's method.
	// Host takes the host the request is sent to, in lower case and without its
	// port.
	// QueryParam takes the value of a parameter of the query.
	// JWTClaim takes a claim of a JSON Web Token. Unless jwtClaim.verification is
	// Verified, or a gateway in front of the pods refuses tokens that were not
	// issued, a client opens a counter of its own with each token that it makes
	// up.
	// PeerIdentity takes the URI, such as spiffe://cluster.local/ns/shop/sa/web,
	// of the certificate by which the caller authenticated itself to the proxy in
	// front of the pod, as a service mesh writes it in X-Forwarded-Client-Cert. It
	// needs spec.clientIP, which says which proxy is believed; requests by others
	// lack the part.
	// Expression takes the value of an expression.
	// Descriptor takes the value of an entry of a descriptor, which only calls of
	// Envoy's rate limit service have; those have none of the others.
	// +required
	Type KeyPartType `json:"type"`

	// header names the header of type Header.
	// +optional
	Header *HeaderKey `json:"header,omitempty"`

	// queryParam names the parameter of type QueryParam.
	// +optional
	QueryParam *QueryParamKey `json:"queryParam,omitempty"`

	// jwtClaim names the claim of type JWTClaim.
	// +optional
	JWTClaim *JWTClaimKey `json:"jwtClaim,omitempty"`

	// expression of type Expression: one of the Common Expression Language over
	// the variables of match[].expression, whose value is a string, as in 'x-plan'
	// in request.headers ? request.headers['x-plan'] : 'free'. A request for which
	// it has no value, or an empty one, lacks the part.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=1024
	Expression string `json:"expression,omitempty"`

	// descriptor names the entry of type Descriptor.
	// +optional
	Descriptor *DescriptorEntryKey `json:"descriptor,omitempty"`
}

// HeaderKey names a header to take a key from.
type HeaderKey struct {
	// name of the header, in any case.
	// +required
	Name HeaderName `json:"name"`
}

// QueryParamKey names a parameter of the query to take a key from.
type QueryParamKey struct {
	// name of the parameter, decoded and in its very case.
	// +required
	Name QueryParamName `json:"name"`
}

// JWTClaimKey names a claim to take a key from.
// +kubebuilder:validation:XValidation:rule="self.verification != 'Verified' || has(self.provider)",fieldPath=".provider",reason=FieldValueRequired,message="verification Verified needs to know who issues the token: set provider to the name of an entry of spec.jwtProviders"
// +kubebuilder:validation:XValidation:rule="self.verification == 'Verified' || !has(self.provider)",fieldPath=".provider",reason=FieldValueForbidden,message="provider is read only with verification Verified: set that, or remove provider to take what the sender of a request claims"
type JWTClaimKey struct {
	// claim is the path of the claim: the names of nested ones are joined by dots,
	// as in realm.tenant. A request whose claim is a list or an object lacks the
	// part.
	// +required
	Claim ClaimPath `json:"claim"`

	// header that carries the token. In Authorization, the default, it stands
	// behind Bearer; in others that may be left out.
	// +optional
	// +kubebuilder:default=Authorization
	Header HeaderName `json:"header,omitempty"`

	// verification says whether the token is verified before the claim is read.
	// Unverified, the default: it is not. The sender of a request chooses the
	// claim, unless something in front of the pods refuses tokens that were not
	// issued.
	// Verified: a request lacks the part unless provider verifies the token, now.
	// A ConcurrencyPool verifies none.
	// +optional
	// +kubebuilder:default=Unverified
	Verification Verification `json:"verification,omitempty"`

	// provider that verifies the token: the name of an entry of spec.jwtProviders.
	// +optional
	// +kubebuilder:validation:MaxLength=63
	Provider string `json:"provider,omitempty"`
}

// DescriptorEntryKey names an entry of a descriptor to take a key from.
type DescriptorEntryKey struct {
	// key of the entry.
	// +required
	Key DescriptorKey `json:"key"`
}

// KeyPartType names what a key part is taken from.
// +kubebuilder:validation:Enum=Header;ClientIP;Path;Method;Host;QueryParam;JWTClaim;PeerIdentity;Expression;Descriptor
type KeyPartType string

// The types of a key part.
const (
	HeaderPart   KeyPartType = "Header"
	ClientIPPart KeyPartType = "ClientIP"
	PathPart     KeyPartType = "Path"
	MethodPart   KeyPartType = "Method"
	HostPart     KeyPartType = "Host"

	QueryParamPart   KeyPartType = "QueryParam"
	JWTClaimPart     KeyPartType = "JWTClaim"
	PeerIdentityPart KeyPartType = "PeerIdentity"
	ExpressionPart   KeyPartType = "Expression"
	DescriptorPart   KeyPartType = "Descriptor"
)

// OnMissing says what happens to a request without a part of the key.
// +kubebuilder:validation:Enum=Shared;Skip;Reject
type OnMissing string

// Ways to treat requests without the key.
const (
	OnMissingShared OnMissing = "Shared"
	OnMissingSkip   OnMissing = "Skip"
	OnMissingReject OnMissing = "Reject"
)
