package v1alpha1

// Limit is one named limit.
// +kubebuilder:validation:XValidation:rule="!has(self.rates) || self.rates.all(r, !has(r.burst)) || self.algorithm in ['TokenBucket', 'GCRA']",fieldPath=".rates",reason=FieldValueForbidden,message="burst is read only with algorithm TokenBucket or GCRA: remove burst, or set algorithm to TokenBucket"
// +kubebuilder:validation:XValidation:rule="!has(self.rates) || self.rates.all(r, !has(r.cadence)) || self.algorithm == 'Quota'",fieldPath=".rates",reason=FieldValueForbidden,message="cadence is read only with algorithm Quota: write a window instead, or set algorithm to Quota"
// +kubebuilder:validation:XValidation:rule="!has(self.utcOffset) || self.algorithm == 'Quota'",fieldPath=".utcOffset",reason=FieldValueForbidden,message="utcOffset is read only with algorithm Quota: remove it, or set algorithm to Quota"
// +kubebuilder:validation:XValidation:rule="!has(self.buckets) || self.algorithm == 'SlidingWindow'",fieldPath=".buckets",reason=FieldValueForbidden,message="buckets is read only with algorithm SlidingWindow: remove it, or set algorithm to SlidingWindow"
// +kubebuilder:validation:XValidation:rule="!has(self.maxDelay) || self.algorithm == 'LeakyBucket'",fieldPath=".maxDelay",reason=FieldValueForbidden,message="maxDelay is read only with algorithm LeakyBucket: remove it, or set algorithm to LeakyBucket"
// +kubebuilder:validation:XValidation:rule="self.algorithm != 'LeakyBucket' || has(self.maxDelay)",fieldPath=".maxDelay",reason=FieldValueRequired,message="algorithm LeakyBucket needs to know how long a request may wait: set maxDelay to less than what clients wait for, such as 500ms"
// +kubebuilder:validation:XValidation:rule="self.algorithm != 'LeakyBucket' || !has(self.cost) || !has(self.cost.responseHeader)",fieldPath=".cost.responseHeader",reason=FieldValueForbidden,message="with algorithm LeakyBucket a request has taken its place in the queue before its response is known: use requestHeader, or another algorithm"
// +kubebuilder:validation:XValidation:rule="self.algorithm != 'LeakyBucket' || self.combine == 'All'",fieldPath=".combine",message="what waits in a LeakyBucket leaves at one pace, so Any has no meaning: set combine to All"
// +kubebuilder:validation:XValidation:rule="self.algorithm != 'LeakyBucket' || !has(self.rates) || (self.rates.size() == 1 && (!has(self.overrides) || self.overrides.all(o, o.rates.size() == 1)))",fieldPath=".rates",message="what waits in a LeakyBucket leaves at one pace: keep the slowest of the rates"
// +kubebuilder:validation:XValidation:rule="!has(self.overrides) || has(self.key) || (has(self.scope) && self.scope == 'Federated')",fieldPath=".overrides",reason=FieldValueForbidden,message="overrides are of values of the key, and this limit has none: set key, or remove overrides"
// +kubebuilder:validation:XValidation:rule="!has(self.overrides) || self.algorithm in ['TokenBucket', 'GCRA'] || self.overrides.all(o, o.rates.all(r, !has(r.burst)))",fieldPath=".overrides",reason=FieldValueForbidden,message="burst is read only with algorithm TokenBucket or GCRA: remove burst, or set algorithm to TokenBucket"
// +kubebuilder:validation:XValidation:rule="!has(self.overrides) || self.algorithm == 'Quota' || self.overrides.all(o, o.rates.all(r, !has(r.cadence)))",fieldPath=".overrides",reason=FieldValueForbidden,message="cadence is read only with algorithm Quota: write a window instead, or set algorithm to Quota"
// +kubebuilder:validation:XValidation:rule="!has(self.overrides) || !has(self.key) || self.overrides.all(o, o.values.all(v, v.parts.size() == self.key.parts.size()))",fieldPath=".overrides",message="a value names another number of parts than the key has: write one string for each of key.parts, in their order"
// +kubebuilder:validation:XValidation:rule="!has(self.fairness) || self.algorithm in ['FixedWindow', 'Quota']",fieldPath=".fairness",reason=FieldValueForbidden,message="fairness splits a window, and only algorithms FixedWindow and Quota have windows: set algorithm to FixedWindow, or remove fairness and use a key, which limits each tenant by itself"
// +kubebuilder:validation:XValidation:rule="!has(self.fairness) || !has(self.rates) || (self.rates.size() == 1 && (!has(self.overrides) || self.overrides.all(o, o.rates.size() == 1)))",fieldPath=".fairness",message="fairness splits one window: keep one of the rates, and put the others into a limit of their own"
// +kubebuilder:validation:XValidation:rule="!has(self.fairness) || self.combine == 'All'",fieldPath=".fairness",message="fairness and combine Any contradict each other: set combine to All, or remove fairness"
// +kubebuilder:validation:XValidation:rule="!has(self.fairness) || !has(self.fairness.reserve) || !self.fairness.reserve || !has(self.scope) || self.scope != 'Federated'",fieldPath=".fairness.reserve",reason=FieldValueForbidden,message="a tenant may ask in another cluster, where its weight counts, so nothing of a FederatedBudget is reserved for it here: remove reserve, or set scope to Fleet"
// +kubebuilder:validation:XValidation:rule="has(self.rates) || (has(self.scope) && self.scope == 'Federated')",fieldPath=".rates",reason=FieldValueRequired,message="a limit of this cluster needs to know how much it admits: set rates, or set scope to Federated and budgetRef to share a FederatedBudget with other clusters"
// +kubebuilder:validation:XValidation:rule="!has(self.budgetRef) || (has(self.scope) && self.scope == 'Federated')",fieldPath=".budgetRef",reason=FieldValueForbidden,message="budgetRef is read only with scope Federated: remove it, or set scope to Federated and remove rates"
// +kubebuilder:validation:XValidation:rule="!has(self.scope) || self.scope != 'Federated' || has(self.budgetRef)",fieldPath=".budgetRef",reason=FieldValueRequired,message="scope Federated draws from a budget: set budgetRef.name to a FederatedBudget of this namespace, or set scope to Fleet and rates"
// +kubebuilder:validation:XValidation:rule="!has(self.scope) || self.scope != 'Federated' || !has(self.rates)",fieldPath=".rates",reason=FieldValueForbidden,message="with scope Federated the rate is that of the FederatedBudget: remove rates, or set scope to Fleet"
// +kubebuilder:validation:XValidation:rule="!has(self.scope) || self.scope != 'Federated' || !has(self.key)",fieldPath=".key",reason=FieldValueForbidden,message="with scope Federated the key is that of the FederatedBudget: remove key here and set spec.key there, or set scope to Fleet"
// +kubebuilder:validation:XValidation:rule="!has(self.scope) || self.scope != 'Federated' || !has(self.overrides)",fieldPath=".overrides",reason=FieldValueForbidden,message="with scope Federated the overrides are those of the FederatedBudget: remove overrides here and set spec.key.overrides there, or set scope to Fleet"
// +kubebuilder:validation:XValidation:rule="!has(self.scope) || self.scope != 'Federated' || self.combine == 'All'",fieldPath=".combine",reason=FieldValueForbidden,message="all rates of a FederatedBudget have to admit, so there is nothing to combine: remove combine, or set scope to Fleet"
// +kubebuilder:validation:XValidation:rule="!has(self.scope) || self.scope != 'Federated' || self.algorithm == 'FixedWindow'",fieldPath=".algorithm",message="a FederatedBudget admits its limit in each window: set algorithm to FixedWindow, or set scope to Fleet"
type Limit struct {
	// name identifies the limit in its policy, a DNS label of at most 63
	// characters.
	// It names the counters: another name is another count. Clients see it in the
	// answer to a refused request.
	// +required
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:XValidation:rule="self.matches('^[a-z0-9]([-a-z0-9]*[a-z0-9])?$')",message="not a DNS label: use lower-case letters, digits and dashes, starting and ending with a letter or digit, such as per-tenant"
	Name string `json:"name"`

	// mode says what a refusal of this limit does. Absent: as spec.mode says.
	// Enforce refuses the request, unless spec.mode is Shadow.
	// Shadow counts the refusal and lets the request pass.
	// +optional
	Mode PolicyMode `json:"mode,omitempty"`

	// match selects the requests that the limit counts: those that one of the
	// entries matches. Absent: every request. At most 8.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=8
	Match []Match `json:"match,omitempty"`

	// exempt takes requests out again: what one of the entries matches is neither
	// counted nor refused by this limit. At most 8.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=8
	Exempt []Match `json:"exempt,omitempty"`

	// key splits the limit into one counter for each value. Absent: one counter
	// for the whole fleet; with scope Federated the key is that of the budget.
	// +optional
	Key *Key `json:"key,omitempty"`

	// algorithm says what a rate promises, for the fleet as a whole.
	// FixedWindow, the default, admits at most limit in each window; windows are
	// aligned to multiples of their length, so an interval across a boundary may
	// see twice the limit.
	// SlidingWindow admits at most limit in every interval as long as the window.
	// It counts in buckets, so budget may come back one bucket late, never early.
	// SlidingLog does the same to the microsecond and remembers each grant: for
	// small limits.
	// TokenBucket admits at most burst at once, and limit per window evenly after
	// it.
	// GCRA admits the same requests as TokenBucket, under the name that some know.
	// LeakyBucket lets limit per window through, evenly: requests wait for their
	// turn, and those that would wait longer than maxDelay are refused. It needs
	// consistency mode Strict.
	// Quota is FixedWindow over calendar periods or windows shifted by utcOffset.
	// +optional
	// +kubebuilder:default=FixedWindow
	Algorithm Algorithm `json:"algorithm,omitempty"`

	// scope says which pods share the limit.
	// Fleet, the default: the selected pods of this cluster, at rates.
	// Federated: those of several clusters, at the rate, and by the key, of the
	// FederatedBudget that budgetRef names. The controller of each cluster leases
	// from it for its pods, so the policy's store is Controller.
	// +optional
	Scope LimitScope `json:"scope,omitempty"`

	// budgetRef names the FederatedBudget of scope Federated. Limits that name the
	// same budget draw from it together.
	// +optional
	BudgetRef *BudgetReference `json:"budgetRef,omitempty"`

	// rates are 1 to 4 amounts per window; their windows differ. A LeakyBucket has
	// one, and a limit of scope Federated none.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=4
	// +kubebuilder:validation:XValidation:rule="self.size() == 1 || self.exists(r, has(r.window) == has(r.cadence) || (has(r.window) && !r.window.matches('^([0-9]{1,5}(h|m|s|ms)){1,4}$'))) || self.all(a, self.exists_one(b, has(a.window) && has(b.window) ? duration(a.window) == duration(b.window) : (has(a.cadence) && has(b.cadence) && a.cadence == b.cadence)))",message="two rates have windows of the same length: keep the one with the smaller limit"
	Rates []Rate `json:"rates,omitempty"`

	// combine says how many of the rates have to admit a request.
	// All, the default: every one; it is charged to all.
	// Any: one is enough; it is charged to each as far as that has room.
	// +optional
	// +kubebuilder:default=All
	Combine Combine `json:"combine,omitempty"`

	// utcOffset is how far the clock that a Quota goes by is ahead of UTC,
	// "-14:00" to "+14:00", by default "+00:00". It does not follow daylight
	// saving time: a day always has 24 hours.
	// +optional
	// +kubebuilder:validation:MaxLength=6
	// +kubebuilder:validation:XValidation:rule="self.matches('^([-+](0[0-9]|1[0-3]):[0-5][0-9]|[-+]14:00)$')",message="not an offset from UTC: write a sign, two digits for hours, a colon and two for minutes, from -14:00 to +14:00, such as +02:00"
	UTCOffset string `json:"utcOffset,omitempty"`

	// buckets is in how many parts SlidingWindow counts a window, 1 to 1000, by
	// default 60. More of them give budget back sooner and take more memory in the
	// store.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=1000
	Buckets *int32 `json:"buckets,omitempty"`

	// maxDelay is how long a request may wait in a LeakyBucket, 1ms to 1h. The
	// sidecar holds its connection meanwhile, so choose less than what clients
	// wait for.
	// +optional
	MaxDelay Delay `json:"maxDelay,omitempty"`

	// overrides give single values of the key rates of their own, on the counters
	// that they have anyway. At most 32.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=32
	Overrides []Override `json:"overrides,omitempty"`

	// cost says how many units a request is charged. Absent: 1.
	// +optional
	Cost *Cost `json:"cost,omitempty"`

	// fairness splits the limit over tenants by weight, over the whole fleet. The
	// part of a declared tenant is kept for it while it is active; the part that
	// an idle one does not use is lent to the others. It needs algorithm
	// FixedWindow or Quota with one rate.
	// +optional
	Fairness *Fairness `json:"fairness,omitempty"`
}

// LimitScope says which pods share a limit.
// +kubebuilder:validation:Enum=Fleet;Federated
type LimitScope string

// The scopes of a limit.
const (
	FleetScope     LimitScope = "Fleet"
	FederatedScope LimitScope = "Federated"
)

// BudgetReference names a FederatedBudget in the namespace of the policy.
type BudgetReference struct {
	// name of the FederatedBudget.
	// +required
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:XValidation:rule="self.matches('^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$')",message="not the name of a FederatedBudget: use lower-case letters, digits, dashes and dots, such as checkout"
	Name string `json:"name"`
}

// Algorithm says what a rate promises.
// +kubebuilder:validation:Enum=FixedWindow;SlidingWindow;SlidingLog;TokenBucket;GCRA;LeakyBucket;Quota
type Algorithm string

// The algorithms.
const (
	FixedWindowAlgorithm   Algorithm = "FixedWindow"
	SlidingWindowAlgorithm Algorithm = "SlidingWindow"
	SlidingLogAlgorithm    Algorithm = "SlidingLog"
	TokenBucketAlgorithm   Algorithm = "TokenBucket"
	GCRAAlgorithm          Algorithm = "GCRA"
	LeakyBucketAlgorithm   Algorithm = "LeakyBucket"
	QuotaAlgorithm         Algorithm = "Quota"
)

// Combine says how many rates have to admit a request.
// +kubebuilder:validation:Enum=All;Any
type Combine string

// The ways to combine rates.
const (
	CombineAll Combine = "All"
	CombineAny Combine = "Any"
)

// Rate is an amount per window.
// +kubebuilder:validation:XValidation:rule="has(self.window) != has(self.cadence)",message="set exactly one of window, a length such as 10s, and cadence, a calendar period of algorithm Quota"
type Rate struct {
	// limit is how many units one window admits, 1 to 1000000000000. A request is
	// one unit unless cost says otherwise.
	// +required
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=1000000000000
	Limit int64 `json:"limit"`

	// window is the length of the window, 100ms to 744h (31 days): whole numbers
	// of h, m, s and ms, such as 500ms, 10s or 1h30m.
	// +optional
	Window Duration `json:"window,omitempty"`

	// cadence is the calendar period that is the window of a Quota, on a clock
	// that is utcOffset ahead of UTC: Hour, Day, Week (from Monday on) or Month.
	// +optional
	Cadence Cadence `json:"cadence,omitempty"`

	// burst is how many units a TokenBucket or GCRA admits at once, 1 to
	// 1000000000000, by default limit.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=1000000000000
	Burst *int64 `json:"burst,omitempty"`
}

// Cadence is a calendar period.
// +kubebuilder:validation:Enum=Hour;Day;Week;Month
type Cadence string

// The cadences.
const (
	Hourly  Cadence = "Hour"
	Daily   Cadence = "Day"
	Weekly  Cadence = "Week"
	Monthly Cadence = "Month"
)

// Override gives values of a key rates of their own.
type Override struct {
	// values of the key, 1 to 64. A value is named in one override only.
	// +required
	// +listType=atomic
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=64
	Values []KeyValue `json:"values"`

	// rates that these values have instead of those of the limit, 1 to 4; their
	// windows differ. The algorithm and its settings are those of the limit.
	// +required
	// +listType=atomic
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=4
	Rates []Rate `json:"rates"`
}

// KeyValue is one value of a key.
type KeyValue struct {
	// parts are one string for each part of the key, in their order. For a part of
	// type ClientIP it is an IPv4 address, or an IPv6 address, which stands for
	// its /64.
	// +required
	// +listType=atomic
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=4
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=1024
	Parts []string `json:"parts"`
}

// Cost says how many units a request is charged. Headers name whole numbers;
// one that names something else is read as if it were not there.
// +kubebuilder:validation:XValidation:rule="has(self.max) || (!has(self.requestHeader) && !has(self.responseHeader))",fieldPath=".max",reason=FieldValueRequired,message="a header may name any number: set max to the most that one request may be charged"
// +kubebuilder:validation:XValidation:rule="!has(self.max) || has(self.requestHeader) || has(self.responseHeader)",fieldPath=".max",reason=FieldValueForbidden,message="max is read only with requestHeader or responseHeader: remove it, or set one of these"
// +kubebuilder:validation:XValidation:rule="!has(self.max) || self.default <= self.max",fieldPath=".default",message="default is more than max, the most that one request may be charged: raise max, or lower default"
type Cost struct {
	// default is the cost of a request whose headers do not say, 1 to
	// 1000000000000, by default 1.
	// +optional
	// +kubebuilder:default=1
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=1000000000000
	Default int64 `json:"default,omitempty"`

	// max is the most that one request is charged, 1 to 1000000000000: larger
	// numbers in a header count as max.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=1000000000000
	Max *int64 `json:"max,omitempty"`

	// requestHeader names the request header that holds the cost, from 1. Senders
	// of requests can choose it, so let only trusted clients or a gateway set it.
	// +optional
	RequestHeader HeaderName `json:"requestHeader,omitempty"`

	// responseHeader names the response header that holds the cost, from 0, when
	// it is known only afterwards. Until then default is reserved, or what
	// requestHeader names; the difference is settled when the response begins. The
	// cost above the reservation was let through before it was charged and may
	// exceed the limit: set default to max, and no requestHeader, and the limit is
	// exact.
	// +optional
	ResponseHeader HeaderName `json:"responseHeader,omitempty"`
}

// Fairness splits a limit over tenants by weight.
// +kubebuilder:validation:XValidation:rule="!has(self.reserve) || !self.reserve || has(self.weights)",fieldPath=".reserve",message="reserve keeps the parts of declared tenants, and none is declared: name them in weights, or remove reserve"
type Fairness struct {
	// tenant is where a request names its tenant. Requests that name none are one
	// tenant together.
	// +required
	Tenant KeyPart `json:"tenant"`

	// weights declare tenants, at most 64. The part of one that sent a request in
	// this window or the one before is kept for it to the end of the window: its
	// weight / sum of the weights of all that share the window.
	// +optional
	// +listType=map
	// +listMapKey=tenant
	// +kubebuilder:validation:MaxItems=64
	Weights []TenantWeight `json:"weights,omitempty"`

	// defaultWeight is the weight of each other tenant, 1 to 1000, by default 1.
	// It has a part of the window from its first request in it on, as far as that
	// is left.
	// +optional
	// +kubebuilder:default=1
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=1000
	DefaultWeight int32 `json:"defaultWeight,omitempty"`

	// reserve keeps the part of every declared tenant to the end of each window,
	// even while the tenant sends nothing and others are refused. By default,
	// false, the part of a tenant that sent nothing in this window and the one
	// before is lent to the others. It is kept again from its next request on, as
	// far as it was not granted by then: in that one window the tenant may lose up
	// to all of its part.
	// +optional
	Reserve bool `json:"reserve,omitempty"`
}

// TenantWeight declares a tenant.
type TenantWeight struct {
	// tenant as requests name it.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=1024
	Tenant string `json:"tenant"`

	// weight of the tenant, 1 to 1000: twice the weight is twice the part.
	// +required
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=1000
	Weight int32 `json:"weight"`
}

// Duration is a length of time in the format of Gateway API durations
// (GEP-2257).
// +kubebuilder:validation:MaxLength=32
// +kubebuilder:validation:XValidation:rule="self.matches('^([0-9]{1,5}(h|m|s|ms)){1,4}$') && duration(self) >= duration('100ms') && duration(self) <= duration('744h')",message="not a duration from 100ms to 744h: write whole numbers of h, m, s and ms, such as 500ms, 10s or 1h30m"
type Duration string

// Delay is a length of time that a request may wait.
// +kubebuilder:validation:MaxLength=32
// +kubebuilder:validation:XValidation:rule="self.matches('^([0-9]{1,5}(h|m|s|ms)){1,4}$') && duration(self) >= duration('1ms') && duration(self) <= duration('1h')",message="not a duration from 1ms to 1h: write whole numbers of h, m, s and ms, such as 500ms or 2s"
type Delay string
