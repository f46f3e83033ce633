package v1alpha1

// PolicyResponse says what clients are sent: when they are refused, and about
// the units left.
type PolicyResponse struct {
	// headers are the families of fields that inform clients about limits.
	// Default:
	// IETF. An empty list sends none; Retry-After is sent in any case.
	// IETF is RateLimit-Policy and RateLimit of the IETF's draft.
	// XRateLimit is X-RateLimit-Limit, X-RateLimit-Remaining and
	// X-RateLimit-Reset, which many clients know.
	// +optional
	// +listType=set
	// +kubebuilder:default={IETF}
	// +kubebuilder:validation:MaxItems=2
	Headers []QuotaHeaders `json:"headers,omitzero"`

	// quotaFields says when those fields are sent.
	// OnRejection sends them when a request is refused.
	// NearLimit, the default, also when less than a quarter of a limit is left, so
	// that clients slow down in time.
	// Always sends them in every response.
	// +optional
	// +kubebuilder:default=NearLimit
	QuotaFields QuotaFields `json:"quotaFields,omitempty"`

	// retryAfterJitterPercent is by how much, at most, Retry-After is longer than
	// needed, 0 to 100 percent, drawn for each response, so that clients that were
	// refused together do not come back together. Default: 10.
	// +optional
	// +kubebuilder:default=10
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=100
	RetryAfterJitterPercent *int32 `json:"retryAfterJitterPercent,omitempty"`

	// statusCode of a refusal because a limit is reached.
	// 429, the default, says that the client asked for too much.
	// 503 says that the service has no room now, for clients that do not know 429.
	// +optional
	// +kubebuilder:default=429
	// +kubebuilder:validation:Enum=429;503
	StatusCode int32 `json:"statusCode,omitempty"`

	// grpcStatus is what gRPC clients see in its place.
	// ResourceExhausted, the default, is RESOURCE_EXHAUSTED, which clients do not
	// retry unless they are configured to.
	// Unavailable is UNAVAILABLE, which they retry.
	// +optional
	// +kubebuilder:default=ResourceExhausted
	GRPCStatus GRPCStatus `json:"grpcStatus,omitempty"`

	// body of a refusal.
	// +optional
	// +kubebuilder:default={type: ProblemJSON}
	Body ResponseBody `json:"body,omitzero"`
}

// QuotaHeaders is a family of fields that inform clients about limits.
// +kubebuilder:validation:Enum=IETF;XRateLimit
type QuotaHeaders string

// The families of fields.
const (
	IETFHeaders       QuotaHeaders = "IETF"
	XRateLimitHeaders QuotaHeaders = "XRateLimit"
)

// QuotaFields says when fields about limits are sent.
// +kubebuilder:validation:Enum=OnRejection;NearLimit;Always
type QuotaFields string

// When fields are sent.
const (
	QuotaFieldsOnRejection QuotaFields = "OnRejection"
	QuotaFieldsNearLimit   QuotaFields = "NearLimit"
	QuotaFieldsAlways      QuotaFields = "Always"
)

// GRPCStatus is a status of gRPC.
// +kubebuilder:validation:Enum=ResourceExhausted;Unavailable
type GRPCStatus string

// The statuses of a refusal.
const (
	GRPCResourceExhausted GRPCStatus = "ResourceExhausted"
	GRPCUnavailable       GRPCStatus = "Unavailable"
)

// ResponseBody is the body of a refusal.
type ResponseBody struct {
	// type of the body.
	// ProblemJSON, the default, names the limit and why, as
	// application/problem+json of RFC 9457.
	// Text says it in a sentence.
	// None sends no body.
	// +optional
	// +kubebuilder:default=ProblemJSON
	Type BodyType `json:"type,omitempty"`
}

// BodyType names what a body is.
// +kubebuilder:validation:Enum=ProblemJSON;Text;None
type BodyType string

// The types of a body.
const (
	ProblemJSONBody BodyType = "ProblemJSON"
	TextBody        BodyType = "Text"
	NoBody          BodyType = "None"
)
