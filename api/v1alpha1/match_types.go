package v1alpha1

// Match selects requests. Every field that is set must match.
// +kubebuilder:validation:XValidation:rule="has(self.methods) || has(self.paths) || has(self.headers)",message="it names no request: set at least one of methods, paths and headers, or remove it (the list, too, when nothing else is in it)"
type Match struct {
	// methods match when the request's method is one of them. At most 16.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=16
	Methods []Method `json:"methods,omitempty"`

	// paths match when one of them matches the request's path, without its query.
	// At most 16.
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
	// PathPrefix, the default, matches whole path segments: /v1 matches /v1 and /v1/orders, not /v10.
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

	// value to compare with, or the expression, of at most 1024 characters. Unset for
	// type Present.
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
