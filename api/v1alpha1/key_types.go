package v1alpha1

// Key splits a limit into one counter for each value of its parts.
type Key struct {
	// parts are 1 to 4 sources whose values together name the counter.
	// +required
	// +listType=atomic
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=4
	// +kubebuilder:validation:XValidation:rule="self.all(a, self.exists_one(b, a.type == b.type && has(a.header) == has(b.header) && (!has(a.header) || a.header.name.lowerAscii() == b.header.name.lowerAscii())))",message="two parts have the same source: remove one"
	Parts []KeyPart `json:"parts"`

	// onMissing says what happens to a request that lacks one of the parts.
	// Shared, the default, counts all such requests on one counter.
	// Skip lets the limit ignore them.
	// Reject refuses them with 400.
	// +optional
	// +kubebuilder:default=Shared
	OnMissing OnMissing `json:"onMissing,omitempty"`

	// maxKeys is how many values one sidecar tracks, 1 to 1000000, by default 100000.
	// It bounds memory: values beyond it share one counter.
	// +optional
	// +kubebuilder:default=100000
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=1000000
	MaxKeys int32 `json:"maxKeys,omitempty"`
}

// KeyPart is one source of a key.
// +kubebuilder:validation:XValidation:rule="self.type != 'Header' || has(self.header)",fieldPath=".header",reason=FieldValueRequired,message="type Header needs the header to take the value from: set header.name"
// +kubebuilder:validation:XValidation:rule="self.type == 'Header' || !has(self.header)",fieldPath=".header",reason=FieldValueForbidden,message="header is read only with type Header: remove it, or set type to Header"
type KeyPart struct {
	// type names what the value is taken from.
	// Header takes the value of a request header.
	// ClientIP takes the client's address; IPv6 addresses count by their /64.
	// Path takes the request's path without its query.
	// Method takes the request's method.
	// +required
	Type KeyPartType `json:"type"`

	// header names the header of type Header.
	// +optional
	Header *HeaderKey `json:"header,omitempty"`
}

// HeaderKey names a header to take a key from.
type HeaderKey struct {
	// name of the header, in any case.
	// +required
	Name HeaderName `json:"name"`
}

// KeyPartType names what a key part is taken from.
// +kubebuilder:validation:Enum=Header;ClientIP;Path;Method
type KeyPartType string

// The types of a key part.
const (
	HeaderPart   KeyPartType = "Header"
	ClientIPPart KeyPartType = "ClientIP"
	PathPart     KeyPartType = "Path"
	MethodPart   KeyPartType = "Method"
)

// OnMissing says what happens to a request without a part of the key.
// +kubebuilder:validation:Enum=Shared;Skip;Reject
type OnMissing string

// What happens to requests without the key.
const (
	OnMissingShared OnMissing = "Shared"
	OnMissingSkip   OnMissing = "Skip"
	OnMissingReject OnMissing = "Reject"
)
