package v1alpha1

// HostMatch is a host without a port, such as shop.example.com, or a wildcard
// for every host below one, such as *.example.com. Its case does not matter.
// +kubebuilder:validation:MaxLength=253
// +kubebuilder:validation:XValidation:rule="self.matches('^([*][.])?[-_.:A-Za-z0-9]+$')",message="not a host: write a name without scheme, port and path, such as shop.example.com, or *.example.com for all below it"
type HostMatch string

// ValueMatchType says how a value is compared.
// +kubebuilder:validation:Enum=Exact;RegularExpression;Present
type ValueMatchType string

// The types of a match of a value.
const (
	ValueExact             ValueMatchType = "Exact"
	ValueRegularExpression ValueMatchType = "RegularExpression"
	ValuePresent           ValueMatchType = "Present"
)

// QueryParamMatch compares a parameter of the query.
// +kubebuilder:validation:XValidation:rule="self.type == 'Present' || has(self.value)",fieldPath=".value",reason=FieldValueRequired,message="type Exact and type RegularExpression compare a value: set value, or set type to Present to match any value"
// +kubebuilder:validation:XValidation:rule="self.type != 'Present' || !has(self.value)",fieldPath=".value",reason=FieldValueForbidden,message="type Present matches any value: remove value, or set type to Exact"
type QueryParamMatch struct {
	// type says how value is compared.
	// Exact, the default, matches when one of the parameter's values is the very
	// same.
	// RegularExpression matches when the RE2 expression matches the whole of one.
	// Present matches when the query has the parameter, whatever its value.
	// +optional
	// +kubebuilder:default=Exact
	Type ValueMatchType `json:"type,omitempty"`

	// name of the parameter, decoded and in its very case.
	// +required
	Name QueryParamName `json:"name"`

	// value to compare with the decoded value, or the expression, of at most 1024
	// characters. Unset for type Present.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=1024
	Value string `json:"value,omitempty"`
}

// QueryParamName is the name of a parameter of the query, decoded.
// +kubebuilder:validation:MinLength=1
// +kubebuilder:validation:MaxLength=256
type QueryParamName string

// JWTClaimMatch compares a claim of a JSON Web Token.
// +kubebuilder:validation:XValidation:rule="self.type == 'Present' || has(self.value)",fieldPath=".value",reason=FieldValueRequired,message="type Exact and type RegularExpression compare a value: set value, or set type to Present to match any value"
// +kubebuilder:validation:XValidation:rule="self.type != 'Present' || !has(self.value)",fieldPath=".value",reason=FieldValueForbidden,message="type Present matches any value: remove value, or set type to Exact"
// +kubebuilder:validation:XValidation:rule="self.verification != 'Verified' || has(self.provider)",fieldPath=".provider",reason=FieldValueRequired,message="verification Verified needs to know who issues the token: set provider to the name of an entry of spec.jwtProviders"
// +kubebuilder:validation:XValidation:rule="self.verification == 'Verified' || !has(self.provider)",fieldPath=".provider",reason=FieldValueForbidden,message="provider is read only with verification Verified: set that, or remove provider to take what the sender of a request claims"
type JWTClaimMatch struct {
	// header that carries the token. In Authorization, the default, it stands
	// behind Bearer; in others that may be left out. A token of more than 8 KiB,
	// or that cannot be read, claims nothing.
	// +optional
	// +kubebuilder:default=Authorization
	Header HeaderName `json:"header,omitempty"`

	// claim is the path of the claim: the names of nested ones are joined by dots,
	// as in realm.roles.
	// +required
	Claim ClaimPath `json:"claim"`

	// type says how value is compared. One entry of a claim that is a list has to
	// match. Numbers are compared as they are written, and true and false as
	// words.
	// Exact, the default, matches the very same value.
	// RegularExpression matches when the RE2 expression matches the whole value.
	// Present matches when the token has the claim, whatever its value.
	// +optional
	// +kubebuilder:default=Exact
	Type ValueMatchType `json:"type,omitempty"`

	// value to compare with, or the expression, of at most 1024 characters. Unset
	// for type Present.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=1024
	Value string `json:"value,omitempty"`

	// verification says whether the token is verified before the claim is read.
	// Unverified, the default: it is not. The sender of a request chooses the
	// claim, unless something in front of the pods refuses tokens that were not
	// issued.
	// Verified: nothing matches unless provider verifies the token, now. A
	// ConcurrencyPool verifies none.
	// +optional
	// +kubebuilder:default=Unverified
	Verification Verification `json:"verification,omitempty"`

	// provider that verifies the token: the name of an entry of spec.jwtProviders.
	// +optional
	// +kubebuilder:validation:MaxLength=63
	Provider string `json:"provider,omitempty"`
}

// ClaimPath is the path of a claim, such as sub or realm.roles. A claim whose
// own name has dots, such as https://example.com/plan, is found by it.
// +kubebuilder:validation:MinLength=1
// +kubebuilder:validation:MaxLength=256
// +kubebuilder:validation:XValidation:rule="!self.startsWith('.') && !self.endsWith('.')",message="not the path of a claim: remove the dot at its beginning or end, as in realm.roles"
type ClaimPath string

// GRPCMatch compares the service and the method of a gRPC call, which are its
// path.
type GRPCMatch struct {
	// service by its full name, such as shop.v1.Orders.
	// +required
	// +kubebuilder:validation:MaxLength=1024
	// +kubebuilder:validation:XValidation:rule="self.matches('^[A-Za-z_][A-Za-z0-9_]*([.][A-Za-z_][A-Za-z0-9_]*)*$')",message="not the full name of a service: write package and service, without slashes, such as shop.v1.Orders"
	Service string `json:"service"`

	// method of the service, such as Create. Absent: all of them.
	// +optional
	// +kubebuilder:validation:MaxLength=1024
	// +kubebuilder:validation:XValidation:rule="self.matches('^[A-Za-z_][A-Za-z0-9_]*$')",message="not the name of a method: write it alone, such as Create"
	Method string `json:"method,omitempty"`
}

// DescriptorMatch compares an entry of a descriptor.
type DescriptorMatch struct {
	// key of the entry.
	// +required
	Key DescriptorKey `json:"key"`

	// value of the entry, of at most 1024 characters. Absent: any value.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=1024
	Value string `json:"value,omitempty"`
}

// DescriptorKey is the key of an entry of a descriptor.
// +kubebuilder:validation:MinLength=1
// +kubebuilder:validation:MaxLength=256
type DescriptorKey string
