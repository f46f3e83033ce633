package v1alpha1

// BudgetKey splits a budget into one limit for each value of its parts.
// +kubebuilder:validation:XValidation:rule="!has(self.overrides) || self.overrides.all(o, o.values.all(v, v.parts.size() == self.parts.size()))",fieldPath=".overrides",message="a value names another number of parts than the key has: write one string for each of key.parts, in their order"
type BudgetKey struct {
	// parts are 1 to 4 sources whose values together name the limit that a request
	// counts for. Claims that a provider verifies name an entry of
	// spec.jwtProviders of the policies that draw from the budget, and parts of
	// type PeerIdentity need their spec.clientIP.
	// +required
	// +listType=atomic
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=4
	// +kubebuilder:validation:XValidation:rule="self.size() == 1 || self.all(a, self.exists_one(b, a.type == b.type && (has(a.header) ? a.header.name.lowerAscii() : '') == (has(b.header) ? b.header.name.lowerAscii() : '') && (has(a.queryParam) ? a.queryParam.name : '') == (has(b.queryParam) ? b.queryParam.name : '') && (has(a.jwtClaim) ? [a.jwtClaim.claim, a.jwtClaim.header.lowerAscii()] : []) == (has(b.jwtClaim) ? [b.jwtClaim.claim, b.jwtClaim.header.lowerAscii()] : []) && (has(a.descriptor) ? a.descriptor.key : '') == (has(b.descriptor) ? b.descriptor.key : '') && (has(a.expression) ? a.expression : '') == (has(b.expression) ? b.expression : '')))",message="two parts have the same source: remove one"
	Parts []KeyPart `json:"parts"`

	// onMissing says what happens to a request that lacks one of the parts, or has
	// several values of it that differ: apps do not agree on which of them counts.
	// Shared, the default, counts all such requests of all clusters for one limit.
	// Skip lets the budget ignore those that lack one, and counts the others as
	// Shared.
	// Reject refuses them with 400.
	// +optional
	// +kubebuilder:default=Shared
	OnMissing OnMissing `json:"onMissing,omitempty"`

	// maxKeys is how many values of a window the hub counts by themselves, and one
	// sidecar tracks, 1 to 100000, by default 10000.
	// It bounds memory: values beyond it share limits, one for each 8 of maxKeys
	// (condition KeysFull). A Redis or Postgres has a counter for each value.
	// +optional
	// +kubebuilder:default=10000
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=100000
	MaxKeys int32 `json:"maxKeys,omitempty"`

	// overrides give single values of the key limits of their own, over all
	// clusters together. At most 32. The hub counts these values by themselves,
	// beside the maxKeys others.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=32
	Overrides []BudgetOverride `json:"overrides,omitempty"`
}

// BudgetOverride gives values of a budget's key a limit of their own.
type BudgetOverride struct {
	// values of the key, 1 to 64. A value is named in one override only.
	// +required
	// +listType=atomic
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=64
	Values []KeyValue `json:"values"`

	// limit that each of these values has instead of rate.limit, 1 to
	// 1000000000000, in the same windows. Its limits of additionalRates are those
	// of all values.
	// +required
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=1000000000000
	Limit int64 `json:"limit"`
}
