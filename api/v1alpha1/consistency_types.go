package v1alpha1

// Consistency says how a sidecar uses the store. Every mode is exact while the
// store answers, for any number of pods, unless leases carry over.
// +kubebuilder:validation:XValidation:rule="self.mode == 'Leased' || !has(self.lease)",fieldPath=".lease",reason=FieldValueForbidden,message="lease is read only in mode Leased: remove it, or set mode to Leased"
type Consistency struct {
	// mode says how often the store is asked.
	// Leased, the default, asks once for a batch of credits and then decides in
	// memory; credits that are not spent die.
	// CachedDeny asks for every request that may be admitted, and refuses in
	// memory what the store said it would refuse.
	// Strict asks for every request.
	// +optional
	// +kubebuilder:default=Leased
	Mode ConsistencyMode `json:"mode,omitempty"`

	// lease tunes mode Leased.
	// +optional
	Lease *Lease `json:"lease,omitempty"`
}

// ConsistencyMode says how often the store is asked.
// +kubebuilder:validation:Enum=Leased;CachedDeny;Strict
type ConsistencyMode string

// The consistency modes.
const (
	LeasedMode     ConsistencyMode = "Leased"
	CachedDenyMode ConsistencyMode = "CachedDeny"
	StrictMode     ConsistencyMode = "Strict"
)

// Lease tunes the batches of credits that sidecars lease.
// +kubebuilder:validation:XValidation:rule="!has(self.lowWater) || self.lowWater < (self.size.type == 'Fixed' ? (has(self.size.batch) ? self.size.batch : 1) : (has(self.size.max) ? self.size.max : 10000))",fieldPath=".lowWater",message="lowWater is not below the size of a lease, so that each lease would ask for the next at once: lower it below size.batch, or below size.max (by default 10000)"
type Lease struct {
	// size says how many credits one lease asks for.
	// +optional
	// +kubebuilder:default={type: Adaptive}
	Size LeaseSize `json:"size,omitzero"`

	// expiry says when credits that are not spent die.
	// Coupled, the default: with the window that granted them or, for algorithms
	// without windows, after lifetime. No window admits more than the limit.
	// CarryOver: when they are spent. A pod may start a window with what is left
	// of its last lease, so a window may admit pods · (batch − 1 + lowWater) more
	// than the limit, which status shows as the bound. It needs algorithm
	// FixedWindow or Quota.
	// +optional
	// +kubebuilder:default=Coupled
	Expiry LeaseExpiry `json:"expiry,omitempty"`

	// lowWater is how many credits are left when the next lease is asked for ahead
	// of need, so that no request waits for it; less than the size of a lease. 0,
	// the default, asks when credits run out.
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=1000000
	LowWater int64 `json:"lowWater,omitempty"`

	// returnIdleAfter gives the credits of a key back to the store after the key
	// was idle for this time, 100ms to 744h. Absent: an eighth of the shortest
	// window of the limit, at least 100ms, for busy keys that had few units left
	// lately.
	// Where sizes are Fixed or no window ends the life of credits, they die
	// unspent then.
	// +optional
	ReturnIdleAfter Duration `json:"returnIdleAfter,omitempty"`

	// lifetime is how long credits of a limit without windows may be spent, 5ms to
	// 1m; for SlidingWindow, SlidingLog, TokenBucket and GCRA. A longer one asks
	// the store less often and holds budget back: limit · lifetime / window of a
	// bucket's burst; a sliding sum counts units that much longer. Absent: a
	// twentieth of the shortest window, from 20ms to 1s, and at most the time in
	// which a quarter of the burst flows in.
	// +optional
	Lifetime Lifetime `json:"lifetime,omitempty"`
}

// LeaseSize says how many credits one lease asks for. No lease asks for more
// than the limit, and a request that costs more than the size leases its cost.
// +kubebuilder:validation:XValidation:rule="self.type != 'Fixed' || has(self.batch)",fieldPath=".batch",reason=FieldValueRequired,message="type Fixed needs a size: set batch, such as 100, or set type to Adaptive"
// +kubebuilder:validation:XValidation:rule="!has(self.batch) || self.type == 'Fixed'",fieldPath=".batch",reason=FieldValueForbidden,message="batch is read only with type Fixed: set type to Fixed, or set min and max instead"
// +kubebuilder:validation:XValidation:rule="self.type != 'Fixed' || !has(self.min)",fieldPath=".min",reason=FieldValueForbidden,message="min is read only with types Adaptive and Predictive: remove it, or change type"
// +kubebuilder:validation:XValidation:rule="self.type != 'Fixed' || !has(self.max)",fieldPath=".max",reason=FieldValueForbidden,message="max is read only with types Adaptive and Predictive: remove it, or change type"
// +kubebuilder:validation:XValidation:rule="self.type == 'Fixed' || (has(self.min) ? self.min : 1) <= (has(self.max) ? self.max : 10000)",fieldPath=".min",message="min is above max (by default 10000): lower min, or raise max"
type LeaseSize struct {
	// type says how the size is found.
	// Adaptive, the default, learns it from the demand of each key: large enough
	// to ask seldom, small enough to leave little unspent.
	// Predictive adds a forecast of the demand, as far as it proves better.
	// Fixed always asks for batch.
	// +optional
	// +kubebuilder:default=Adaptive
	Type LeaseSizeType `json:"type,omitempty"`

	// batch is the number of credits of one lease of type Fixed, 1 to 1000000.
	// Large batches ask the store less often; small ones leave less of a window
	// unspent in the hands of a pod that does not need it.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=1000000
	Batch *int64 `json:"batch,omitempty"`

	// min is the least that Adaptive and Predictive ask for, 1 to 1000000, by
	// default 1.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=1000000
	Min *int64 `json:"min,omitempty"`

	// max is the most that Adaptive and Predictive ask for, 1 to 1000000, by
	// default 10000.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=1000000
	Max *int64 `json:"max,omitempty"`
}

// The range of sizes that are learned where none is given.
const (
	DefaultMinLease = 1
	DefaultMaxLease = 10_000
)

// LeaseSizeType says how the size of a lease is found.
// +kubebuilder:validation:Enum=Adaptive;Predictive;Fixed
type LeaseSizeType string

// The types of a lease's size.
const (
	AdaptiveSize   LeaseSizeType = "Adaptive"
	PredictiveSize LeaseSizeType = "Predictive"
	FixedSize      LeaseSizeType = "Fixed"
)

// LeaseExpiry says when credits that are not spent die.
// +kubebuilder:validation:Enum=Coupled;CarryOver
type LeaseExpiry string

// The expiries of a lease.
const (
	CoupledExpiry   LeaseExpiry = "Coupled"
	CarryOverExpiry LeaseExpiry = "CarryOver"
)

// Lifetime is how long credits may be spent.
// +kubebuilder:validation:MaxLength=32
// +kubebuilder:validation:XValidation:rule="self.matches('^([0-9]{1,5}(h|m|s|ms)){1,4}$') && duration(self) >= duration('5ms') && duration(self) <= duration('1m')",message="not a duration from 5ms to 1m: write whole numbers of m, s and ms, such as 50ms or 1s"
type Lifetime string
