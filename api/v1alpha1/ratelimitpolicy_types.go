package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// RateLimitPolicy limits the requests that a set of pods admits together: the
// counters are shared by every replica. Several policies may select one pod; a
// request is admitted only when all limits that match it admit it.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:path=ratelimitpolicies,singular=ratelimitpolicy,shortName=rlp,categories=fleetlimits,scope=Namespaced
// +kubebuilder:selectablefield:JSONPath=`.spec.mode`
// +kubebuilder:printcolumn:name="Mode",type=string,JSONPath=`.spec.mode`,description="Enforce refuses requests, Shadow only counts what it would refuse"
// +kubebuilder:printcolumn:name="Limits",type=string,JSONPath=`.status.summary.limits`,description="First rate, and how many more there are"
// +kubebuilder:printcolumn:name="Pods",type=string,JSONPath=`.status.summary.pods`,description="Pods that acknowledged this generation / pods selected"
// +kubebuilder:printcolumn:name="Admitted",type=string,JSONPath=`.status.summary.admitted`,description="Measured over the fleet"
// +kubebuilder:printcolumn:name="Rejected",type=string,JSONPath=`.status.summary.rejected`,description="Measured over the fleet; in Shadow: would have been rejected"
// +kubebuilder:printcolumn:name="Window",type=string,JSONPath=`.status.summary.window`,description="Used of the open window / its limit, of the limit with the smallest part left; Learning while a limit grants nothing"
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
// +kubebuilder:validation:XValidation:rule="self.consistency.mode == 'Strict' || !self.limits.exists(l, l.algorithm == 'LeakyBucket')",fieldPath=".consistency.mode",message="algorithm LeakyBucket delays each request by its place in the queue, which only the store knows: set mode to Strict, or choose another algorithm, such as TokenBucket"
// +kubebuilder:validation:XValidation:rule="!has(self.consistency.lease) || self.consistency.lease.expiry != 'CarryOver' || self.limits.all(l, l.algorithm in ['FixedWindow', 'Quota'])",fieldPath=".consistency.lease.expiry",message="CarryOver takes credits from one window into the next, and only algorithms FixedWindow and Quota have windows: set expiry to Coupled, or change the algorithm of the other limits"
// +kubebuilder:validation:XValidation:rule="!has(self.consistency.lease) || self.consistency.lease.expiry != 'CarryOver' || !self.limits.exists(l, has(l.fairness))",fieldPath=".consistency.lease.expiry",message="CarryOver lets a tenant spend what it was entitled to in another window, so a limit with fairness would not be fair: set expiry to Coupled, or remove fairness"
// +kubebuilder:validation:XValidation:rule="!has(self.consistency.lease) || !has(self.consistency.lease.lifetime) || self.limits.exists(l, l.algorithm in ['SlidingWindow', 'SlidingLog', 'TokenBucket', 'GCRA'])",fieldPath=".consistency.lease.lifetime",message="every limit here has windows, and its credits live until their window ends: remove lifetime, or set the algorithm of a limit to SlidingWindow, SlidingLog, TokenBucket or GCRA"
// +kubebuilder:validation:XValidation:rule="self.store.type == 'Controller' || !self.limits.exists(l, has(l.scope) && l.scope == 'Federated')",fieldPath=".store.type",message="a limit of scope Federated is leased by the controller from its FederatedBudget: set store.type to Controller, or move that limit to a policy of its own"
// +kubebuilder:validation:XValidation:rule="!has(self.consistency.lease) || self.consistency.lease.expiry != 'CarryOver' || !self.limits.exists(l, has(l.scope) && l.scope == 'Federated')",fieldPath=".consistency.lease.expiry",message="CarryOver takes credits from one window into the next, and a FederatedBudget is granted by the window: set expiry to Coupled, or move the limit of scope Federated to a policy of its own"
// +kubebuilder:validation:XValidation:rule="!has(self.anyOf) || self.anyOf.all(a, a.limits.all(n, self.limits.exists(l, l.name == n)))",fieldPath=".anyOf",reason=FieldValueInvalid,message="anyOf names a limit that the policy does not have: name entries of limits"
// +kubebuilder:validation:XValidation:rule="!has(self.anyOf) || self.limits.all(l, self.anyOf.map(a, a.limits.filter(n, n == l.name).size()).sum() <= 1)",fieldPath=".anyOf",message="anyOf names a limit twice: a limit is in one group, and once"
// +kubebuilder:validation:XValidation:rule="!has(self.anyOf) || self.limits.all(l, !has(l.mode) || l.mode != 'Shadow' || !self.anyOf.exists(a, l.name in a.limits))",fieldPath=".anyOf",message="a limit in Shadow lets every request pass, and so would its group: set its mode to Enforce, take it out of anyOf, or set spec.mode to Shadow"
type RateLimitPolicySpec struct {
	// podSelector selects the pods of this namespace that enforce the policy and
	// share its counters. An empty selector, {}, selects every pod. A selected pod
	// enforces only when it carries the sidecar.
	// +required
	PodSelector metav1.LabelSelector `json:"podSelector"`

	// mode says what a refusal does.
	// Enforce, the default, refuses the request.
	// Shadow counts the refusal and lets the request pass, in every limit.
	// +optional
	// +kubebuilder:default=Enforce
	Mode PolicyMode `json:"mode,omitempty"`

	// clientIP says which proxies in front of the pods are believed when they name
	// the client's address, for key parts of type ClientIP, sourceCIDRs and
	// request.clientIP. Without it only the address of the TCP peer counts.
	// +optional
	ClientIP *ClientIP `json:"clientIP,omitempty"`

	// jwtProviders verify the JSON Web Tokens of requests, for the claims that
	// name them. A claim that names none is read unverified. At most 4.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=4
	JWTProviders []JWTProvider `json:"jwtProviders,omitempty"`

	// limits are enforced together: a request is admitted only when all limits
	// that match it admit it. At most 32.
	// +required
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=32
	Limits []Limit `json:"limits"`

	// anyOf are groups of limits. One limit of each group has to admit a request,
	// not all: a limit of each user, for example, and a reserve that all share.
	// The other limits still have to admit it. At most 8 groups.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=8
	AnyOf []Alternatives `json:"anyOf,omitempty"`

	// consistency says how often the store is asked. Default: Leased, with leases
	// of a size that is learned.
	// +optional
	// +kubebuilder:default={mode: Leased}
	Consistency Consistency `json:"consistency,omitzero"`

	// store says where the counters are kept, and how firmly. Default: in the
	// controller, so that counters of windows over a minute outlive its crash.
	// Postgres takes a round trip of some milliseconds for each lease, so it is
	// for few keys.
	// When it is changed, the new store does not know the grants of the old one.
	// So it serves only windows that begin after every pod has let go of the old
	// one; until then the open windows are not served. status.store shows the
	// progress.
	// +optional
	// +kubebuilder:default={type: Controller}
	Store PolicyStore `json:"store,omitzero"`

	// onStoreUnavailable says what a sidecar does while the store does not answer
	// and its leased credits are spent. Default: LocalShare.
	// +optional
	// +kubebuilder:default={action: LocalShare}
	OnStoreUnavailable OnStoreUnavailable `json:"onStoreUnavailable,omitzero"`

	// response says what clients are sent: how they are refused, and when they are
	// sent the units left.
	// +optional
	// +kubebuilder:default={headers: {IETF}, quotaFields: NearLimit, retryAfterJitterPercent: 10, statusCode: 429, grpcStatus: ResourceExhausted, body: {type: ProblemJSON}}
	Response PolicyResponse `json:"response,omitzero"`
}

// Alternatives are a group of limits. One has to admit a request.
type Alternatives struct {
	// limits are the names of 2 to 8 entries of spec.limits, in the order in which
	// they are asked. The first that admits a request is charged, and no other.
	// One that does not match it is left out. When none is left, the group admits
	// it; when all that are left refuse it, it is refused as by the one that may
	// admit it soonest.
	// +required
	// +listType=atomic
	// +kubebuilder:validation:MinItems=2
	// +kubebuilder:validation:MaxItems=8
	// +kubebuilder:validation:items:MaxLength=63
	Limits []string `json:"limits"`
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
	// trustedHops is the number of proxies in front of the pods, 1 to 16. The
	// client is the address that many places from the right in X-Forwarded-For.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=16
	TrustedHops *int32 `json:"trustedHops,omitempty"`

	// trustedCIDRs are the networks of the proxies in front of the pods, at most
	// 64.
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
