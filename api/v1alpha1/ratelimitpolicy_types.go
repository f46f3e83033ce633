package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// RateLimitPolicy limits the requests that a set of pods admits together: the
// counters are shared by every replica. Several policies may select one pod; a
// request is admitted only when all limits that match it admit it.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:path=ratelimitpolicies,singular=ratelimitpolicy,shortName=rlp,categories=fleetlimits,scope=Namespaced
// +kubebuilder:metadata:labels="gateway.networking.k8s.io/policy=Inherited"
// +kubebuilder:selectablefield:JSONPath=`.spec.mode`
// +kubebuilder:printcolumn:name="Mode",type=string,JSONPath=`.spec.mode`,description="Enforce refuses requests, Shadow only counts what it would refuse"
// +kubebuilder:printcolumn:name="Limits",type=string,JSONPath=`.status.summary.limits`,description="First rate, and how many more there are"
// +kubebuilder:printcolumn:name="Pods",type=string,JSONPath=`.status.summary.pods`,description="Pods that acknowledged this generation / pods selected"
// +kubebuilder:printcolumn:name="Admitted",type=string,JSONPath=`.status.summary.admitted`,description="Measured over the fleet"
// +kubebuilder:printcolumn:name="Rejected",type=string,JSONPath=`.status.summary.rejected`,description="Measured over the fleet; in Shadow: would have been rejected"
// +kubebuilder:printcolumn:name="Overshoot",type=string,JSONPath=`.status.summary.overshoot`,description="Admitted beyond the limit in the last window measured ≤ what the configuration guarantees; ? when a newer window is over"
// +kubebuilder:printcolumn:name="Unused",type=string,JSONPath=`.status.summary.unused`,description="Budget that was there while requests were refused, in the last window measured"
// +kubebuilder:printcolumn:name="Guarantee",type=string,JSONPath=`.status.guarantee.grade`,description="How firm the bound is; status.guarantee.reason says why"
// +kubebuilder:printcolumn:name="Programmed",type=string,JSONPath=`.status.conditions[?(@.type=="Programmed")].status`,description="Whether sidecars acknowledged this generation"
// +kubebuilder:printcolumn:name="Accepted",type=string,priority=1,JSONPath=`.status.conditions[?(@.type=="Accepted")].status`,description="Whether the policy is valid"
// +kubebuilder:printcolumn:name="InBound",type=string,priority=1,JSONPath=`.status.conditions[?(@.type=="WithinBound")].status`,description="Whether every window measured stayed within the bound"
// +kubebuilder:printcolumn:name="Store",type=string,priority=1,JSONPath=`.spec.store.type`,description="Where the counters are kept"
// +kubebuilder:printcolumn:name="Reachable",type=string,priority=1,JSONPath=`.status.conditions[?(@.type=="StoreReachable")].status`,description="Whether every sidecar reaches the store"
// +kubebuilder:printcolumn:name="Req/Trip",type=string,priority=1,JSONPath=`.status.summary.requestsPerRoundTrip`,description="Requests decided per round trip to the store"
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type RateLimitPolicy struct {
	metav1.TypeMeta `json:",inline"`

	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec is what the selected pods enforce.
	// +required
	Spec RateLimitPolicySpec `json:"spec"`

	// status is what the fleet acknowledged and what was measured there.
	// +optional
	// +kubebuilder:default={}
	Status RateLimitPolicyStatus `json:"status,omitzero"`
}

// RateLimitPolicyList is a list of RateLimitPolicy objects.
//
// +kubebuilder:object:root=true
type RateLimitPolicyList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []RateLimitPolicy `json:"items"`
}

// RateLimitPolicySpec is what the selected pods enforce.
type RateLimitPolicySpec struct {
	// podSelector selects the pods of this namespace that enforce the policy and
	// share its counters. An empty selector, {}, selects every pod. A selected pod
	// enforces only when it carries the sidecar.
	// +required
	PodSelector metav1.LabelSelector `json:"podSelector"`

	// mode says what a refusal does.
	// Enforce, the default, refuses the request.
	// Shadow counts the refusal and lets the request pass.
	// +optional
	// +kubebuilder:default=Enforce
	Mode PolicyMode `json:"mode,omitempty"`

	// clientIP says which proxies in front of the pods are believed when they name
	// the client's address, for key parts of type ClientIP. Without it only the
	// address of the TCP peer counts.
	// +optional
	ClientIP *ClientIP `json:"clientIP,omitempty"`

	// limits are enforced together: a request is admitted only when all limits that
	// match it admit it. At most 32.
	// +required
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=32
	Limits []Limit `json:"limits"`

	// consistency says how often the store is asked. Default: Leased with a batch of 100.
	// +optional
	// +kubebuilder:default={mode: Leased}
	Consistency Consistency `json:"consistency,omitzero"`

	// store says where the counters are kept. Default: in the controller. It cannot be
	// changed.
	// +optional
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",reason=FieldValueForbidden,message="store cannot be changed, because the new store would not know what the old one granted in the open windows: delete the policy and create it again, or add a second policy"
	// +kubebuilder:default={type: Controller}
	Store Store `json:"store,omitzero"`

	// onStoreUnavailable says what a sidecar does while the store does not answer and
	// its leased credits are spent. Default: LocalShare.
	// +optional
	// +kubebuilder:default={action: LocalShare}
	OnStoreUnavailable OnStoreUnavailable `json:"onStoreUnavailable,omitzero"`
}

// PolicyMode says what a refusal does.
// +kubebuilder:validation:Enum=Enforce;Shadow
type PolicyMode string

// The modes of a policy.
const (
	EnforceMode PolicyMode = "Enforce"
	ShadowMode  PolicyMode = "Shadow"
)

// ClientIP says which proxies are believed about the client's address.
// +kubebuilder:validation:XValidation:rule="has(self.trustedHops) != has(self.trustedCIDRs)",message="set exactly one of trustedHops and trustedCIDRs, or remove clientIP to use the address of the TCP peer"
type ClientIP struct {
	// trustedHops is the number of proxies in front of the pods, 1 to 16. The client
	// is the address that many places from the right in X-Forwarded-For.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=16
	TrustedHops *int32 `json:"trustedHops,omitempty"`

	// trustedCIDRs are the networks of the proxies in front of the pods, at most 64.
	// The client is the rightmost address in X-Forwarded-For outside them.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=64
	TrustedCIDRs []CIDR `json:"trustedCIDRs,omitempty"`
}

// CIDR is a network such as 10.0.0.0/8 or fd00::/8.
// +kubebuilder:validation:MaxLength=43
// +kubebuilder:validation:XValidation:rule="isCIDR(self)",message="not a network: write an address and a prefix length, such as 10.0.0.0/8 or fd00::/8"
// +kubebuilder:validation:XValidation:rule="!isCIDR(self) || cidr(self) == cidr(self).masked()",message="the address has bits beyond the prefix length: set them to zero, such as 10.0.0.0/8 for 10.1.2.3/8"
type CIDR string

// Limit is one named limit.
type Limit struct {
	// name identifies the limit in its policy, a DNS label of at most 63 characters.
	// It names the counters: another name is another count. Clients see it in the
	// answer to a refused request.
	// +required
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:XValidation:rule="self.matches('^[a-z0-9]([-a-z0-9]*[a-z0-9])?$')",message="not a DNS label: use lower-case letters, digits and dashes, starting and ending with a letter or digit, such as per-tenant"
	Name string `json:"name"`

	// match selects the requests that the limit counts: those that one of the
	// entries matches. Absent: every request. At most 8.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=8
	Match []Match `json:"match,omitempty"`

	// key splits the limit into one counter for each value. Absent: one counter for
	// the whole fleet.
	// +optional
	Key *Key `json:"key,omitempty"`

	// rates are 1 to 4 amounts per window. All must admit; their windows differ in length.
	// +required
	// +listType=atomic
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=4
	// +kubebuilder:validation:XValidation:rule="!self.all(r, r.window.matches('^([0-9]{1,5}(h|m|s|ms)){1,4}$')) || self.all(a, self.exists_one(b, duration(a.window) == duration(b.window)))",message="two rates have windows of the same length: keep the one with the smaller limit"
	Rates []Rate `json:"rates"`
}

// Rate is an amount per window. Windows are aligned to multiples of their length
// on the store's clock, so an interval across a boundary may see twice the limit.
type Rate struct {
	// limit is how many requests one window admits, 1 to 1000000000000.
	// +required
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=1000000000000
	Limit int64 `json:"limit"`

	// window is the length of the window, 100ms to 744h (31 days): whole numbers of
	// h, m, s and ms, such as 500ms, 10s or 1h30m.
	// +required
	Window Duration `json:"window"`
}

// Duration is a length of time in the format of Gateway API durations (GEP-2257).
// +kubebuilder:validation:MaxLength=32
// +kubebuilder:validation:XValidation:rule="self.matches('^([0-9]{1,5}(h|m|s|ms)){1,4}$') && duration(self) >= duration('100ms') && duration(self) <= duration('744h')",message="not a duration from 100ms to 744h: write whole numbers of h, m, s and ms, such as 500ms, 10s or 1h30m"
type Duration string
