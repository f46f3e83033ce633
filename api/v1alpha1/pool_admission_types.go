package v1alpha1

// PoolKey gives the requests of each value of its parts a limit of their own,
// besides that of all requests.
type PoolKey struct {
	// parts are 1 to 4 sources whose values together say whose a request is. All
	// types but ClientIP, PeerIdentity and Descriptor, and claims that are not
	// verified: take those from a header that the proxy in front of the pods sets.
	// +required
	// +listType=atomic
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=4
	// +kubebuilder:validation:XValidation:rule="self.size() == 1 || self.all(a, self.exists_one(b, a.type == b.type && (has(a.header) ? a.header.name.lowerAscii() : '') == (has(b.header) ? b.header.name.lowerAscii() : '') && (has(a.queryParam) ? a.queryParam.name : '') == (has(b.queryParam) ? b.queryParam.name : '') && (has(a.jwtClaim) ? [a.jwtClaim.claim, a.jwtClaim.header.lowerAscii()] : []) == (has(b.jwtClaim) ? [b.jwtClaim.claim, b.jwtClaim.header.lowerAscii()] : []) && (has(a.expression) ? a.expression : '') == (has(b.expression) ? b.expression : '')))",message="two parts have the same source: remove one"
	// +kubebuilder:validation:XValidation:rule="!self.exists(p, p.type == 'ClientIP' || p.type == 'PeerIdentity')",reason=FieldValueForbidden,message="a pool knows no proxy that says who the client is: use type Header with a header that the proxy sets"
	// +kubebuilder:validation:XValidation:rule="!self.exists(p, p.type == 'Descriptor')",reason=FieldValueForbidden,message="descriptors are of calls of the rate limit service, which need no slot: use another type, or a RateLimitPolicy"
	// +kubebuilder:validation:XValidation:rule="!self.exists(p, has(p.jwtClaim) && p.jwtClaim.verification == 'Verified')",reason=FieldValueForbidden,message="a pool verifies no token: set verification to Unverified, or use type Header with a header that a gateway sets after it verified the token"
	Parts []KeyPart `json:"parts"`

	// onMissing says what happens to a request that lacks one of the parts, or has
	// several values of it that differ: apps do not agree on which of them counts.
	// Shared, the default, counts all such requests for one value.
	// Skip lets those that lack one need only a slot of the pool, and counts the
	// others as Shared.
	// Reject refuses them with 400.
	// +optional
	// +kubebuilder:default=Shared
	OnMissing OnMissing `json:"onMissing,omitempty"`

	// limit is how many requests of one value the pods may have in flight
	// together, 1 to 1000000. Each pod may have its part of it, so choose several
	// times the number of pods: with less than that some pods refuse every request
	// that has the key.
	// +required
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=1000000
	Limit int64 `json:"limit"`

	// queue lets requests wait in their pod for a slot of their value, those of
	// one value first come first served, before they ask for one of the pool. Of
	// one value no more wait than are left free in the queue: one alone has half
	// of it. Absent: a request whose value has its limit in flight is refused at
	// once.
	// +optional
	Queue *Queue `json:"queue,omitempty"`
}

// Partition keeps a part of every pod's share for some requests. It is kept
// also while they do not use it.
type Partition struct {
	// name of the partition, a DNS label of at most 63 characters.
	// +required
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:XValidation:rule="self.matches('^[a-z0-9]([-a-z0-9]*[a-z0-9])?$')",message="not a DNS label: use lower-case letters, digits and dashes, starting and ending with a letter or digit, such as live"
	Name string `json:"name"`

	// guaranteedPercent is the part of each pod's share that is kept for the
	// partition, 0 to 100, by default 0. No other request gets it, also while the
	// partition does not use it; beyond it the partition uses what is kept for
	// none, as all others do.
	// All partitions together have at most 100.
	// +optional
	// +kubebuilder:default=0
	// +kubebuilder:validation:Minimum=0
	GuaranteedPercent int32 `json:"guaranteedPercent"`

	// match selects the requests of the partition: those that one of the entries
	// matches. Absent: every request that no partition before it took. At most 8.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=8
	// +kubebuilder:validation:XValidation:rule="!self.exists(m, has(m.descriptors))",reason=FieldValueForbidden,message="descriptors are of calls of the rate limit service, which need no slot: remove them, or move them to a RateLimitPolicy"
	Match []Match `json:"match,omitempty"`
}

// Queue lets requests wait for a slot in their pod.
type Queue struct {
	// maxLength is how many requests wait in one pod at most, 1 to 10000. One that
	// comes to a full queue is refused.
	// +required
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=10000
	MaxLength int32 `json:"maxLength"`

	// maxWait is how long a request waits at most, 1ms to 1h; then it is refused.
	// The sidecar holds its connection meanwhile, so choose less than what clients
	// wait for.
	// +required
	MaxWait Delay `json:"maxWait"`
}

// PoolResponse says how requests that find no slot are refused.
type PoolResponse struct {
	// statusCode of the refusal. 503, the default, says that the service has no
	// room now, and lets gRPC clients see UNAVAILABLE, which they retry. 429 says
	// that the client asked for too much; gRPC clients see RESOURCE_EXHAUSTED.
	// +optional
	// +kubebuilder:default=503
	// +kubebuilder:validation:Enum=429;503
	StatusCode int32 `json:"statusCode,omitempty"`
}
