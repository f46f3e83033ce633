package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// RateLimitPolicyStatus is what the fleet acknowledged and what was measured
// there. Every figure is a measurement; one that could not be taken is absent.
type RateLimitPolicyStatus struct {
	// observedGeneration is the generation of the spec that this status speaks of.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// conditions are Accepted, Programmed, WithinBound, StoreReachable, Learning,
	// Ready and, while they are True, KeysFull and Stalled.
	// +optional
	// +listType=map
	// +listMapKey=type
	// +kubebuilder:validation:MaxItems=8
	// +kubebuilder:default={{type: "Accepted", status: "Unknown", reason: "Pending", message: "waiting for the controller", lastTransitionTime: "1970-01-01T00:00:00Z"},{type: "Programmed", status: "Unknown", reason: "Pending", message: "waiting for the controller", lastTransitionTime: "1970-01-01T00:00:00Z"},{type: "Ready", status: "Unknown", reason: "Pending", message: "waiting for the controller", lastTransitionTime: "1970-01-01T00:00:00Z"}}
	Conditions []metav1.Condition `json:"conditions,omitempty"`

	// lastObservationTime is when the figures of this status were last taken.
	// +optional
	LastObservationTime *metav1.Time `json:"lastObservationTime,omitempty"`

	// enforcement counts the pods.
	// +optional
	Enforcement *Enforcement `json:"enforcement,omitempty"`

	// guarantee says how firm the overshoot bounds are.
	// +optional
	Guarantee *Guarantee `json:"guarantee,omitempty"`

	// store is where the counters are kept now, which follows spec.store with
	// care.
	// +optional
	Store *StoreStatus `json:"store,omitempty"`

	// reset is the last time that counters were set back, as the annotation
	// weir.dev/reset asked.
	// +optional
	Reset *ResetStatus `json:"reset,omitempty"`

	// limits are the figures of each limit, in the order of the spec.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=32
	Limits []LimitStatus `json:"limits,omitempty"`

	// summary holds the columns that kubectl prints.
	// +optional
	// +kubebuilder:default={}
	Summary Summary `json:"summary,omitzero"`
}

// Enforcement counts the pods of a policy or a pool.
type Enforcement struct {
	// desired is the number of running pods that podSelector selects, of a pool
	// without those that an older pool applies to.
	// +required
	// +kubebuilder:validation:Minimum=0
	Desired int32 `json:"desired"`

	// current is how many of them acknowledged observedGeneration.
	// +required
	// +kubebuilder:validation:Minimum=0
	Current int32 `json:"current"`
}

// Guarantee says how firm the overshoot bounds are.
type Guarantee struct {
	// grade of the guarantee.
	// Hard: the bounds hold through any crash and any partition.
	// HardExceptSplitBrain: they hold unless two primaries of a replicated store
	// serve at once.
	// BestEffort: the store may forget grants, or admits uncounted while it is
	// away, or requests of some selected pods pass that nothing limits.
	// +required
	Grade GuaranteeGrade `json:"grade"`

	// reason is a sentence that says what the grade rests on.
	// +required
	// +kubebuilder:validation:MaxLength=1024
	Reason string `json:"reason"`
}

// GuaranteeGrade says how firm a bound is.
// +kubebuilder:validation:Enum=Hard;HardExceptSplitBrain;BestEffort
type GuaranteeGrade string

// The grades.
const (
	HardGuarantee                 GuaranteeGrade = "Hard"
	HardExceptSplitBrainGuarantee GuaranteeGrade = "HardExceptSplitBrain"
	BestEffortGuarantee           GuaranteeGrade = "BestEffort"
)

// StoreStatus is where the counters of a policy are kept now.
type StoreStatus struct {
	// active is the store that serves, or that is being left, as spec.store named
	// it.
	// +required
	Active Store `json:"active"`

	// access says how sidecars reach the active store, as spec.store.access did
	// when spec.store named it last. Absent: Direct.
	// +optional
	Access StoreAccess `json:"access,omitempty"`

	// servesFrom is when the store took over from another one, on its own clock:
	// it serves only windows that began since. Absent when it is the first.
	// +optional
	ServesFrom *metav1.MicroTime `json:"servesFrom,omitempty"`

	// phase of the change to the store that spec.store names.
	// Serving: the store named here serves, and it is the one that spec.store
	// names.
	// Draining: the pods let go of the store named here; requests are refused
	// meanwhile.
	// Waiting: the store named here still serves, because not every pod could be
	// made to let go of it; it is tried again.
	// +required
	Phase StorePhase `json:"phase"`

	// message is a sentence that says what the phase waits for, and what to do
	// about it.
	// +optional
	// +kubebuilder:validation:MaxLength=1024
	Message string `json:"message,omitempty"`

	// since is when the phase began.
	// +optional
	Since *metav1.Time `json:"since,omitempty"`

	// failed is how many changes in a row were taken back.
	// +optional
	Failed int32 `json:"failed,omitempty"`

	// restart says what a restart of the Redis or Postgres named here does to
	// counters that are to outlive it, as its server is configured now.
	// Lossless: they go on exactly where they were.
	// Lossy: some may be lost; guarantee.reason of a policy with such counters
	// says why. Absent while the server does not answer, and of the controller.
	// +optional
	Restart StoreRestart `json:"restart,omitempty"`
}

// StoreRestart is what a restart of a store does to counters that are to
// outlive it.
// +kubebuilder:validation:Enum=Lossless;Lossy
type StoreRestart string

// The restarts of a store.
const (
	LosslessRestart StoreRestart = "Lossless"
	LossyRestart    StoreRestart = "Lossy"
)

// StorePhase is how far the change of a store is.
// +kubebuilder:validation:Enum=Serving;Draining;Waiting
type StorePhase string

// The phases of a store.
const (
	StoreServing  StorePhase = "Serving"
	StoreDraining StorePhase = "Draining"
	StoreWaiting  StorePhase = "Waiting"
)

// ResetStatus is the last time that a counter was set back.
type ResetStatus struct {
	// request is the value of the annotation weir.dev/reset that asked for it.
	// +required
	// +kubebuilder:validation:MaxLength=1024
	Request string `json:"request"`

	// phase says how far it is.
	// Started: the store is asked. A request is never carried out twice, so it
	// stays Started when the controller crashes meanwhile: write another.
	// Done: the counter is set back, and pods ask the store again.
	// Failed: nothing was set back, or it is not known; message says why.
	// +required
	Phase ResetPhase `json:"phase"`

	// message is a sentence that says what was set back, or why it was not.
	// +optional
	// +kubebuilder:validation:MaxLength=1024
	Message string `json:"message,omitempty"`

	// time is when the phase began.
	// +optional
	Time *metav1.Time `json:"time,omitempty"`

	// at is when the store was asked, on its clock. Windows that were open then
	// may have admitted what was granted before and the limit once more.
	// +optional
	At *metav1.MicroTime `json:"at,omitempty"`
}

// ResetPhase is how far a request to set a counter back is.
// +kubebuilder:validation:Enum=Started;Done;Failed
type ResetPhase string

// The phases of a reset.
const (
	ResetStarted ResetPhase = "Started"
	ResetDone    ResetPhase = "Done"
	ResetFailed  ResetPhase = "Failed"
)

// LimitStatus is what was measured of one limit. The overshoot and
// underUtilization of a keyed limit are those of its worst key.
type LimitStatus struct {
	// name of the limit in the spec.
	// +required
	// +kubebuilder:validation:MaxLength=63
	Name string `json:"name"`

	// rates of the limit in short, such as 100/1s 3000/1m or 1000000/Month.
	// +optional
	// +kubebuilder:validation:MaxLength=256
	Rates string `json:"rates,omitempty"`

	// admittedPerSecond is what the fleet admitted.
	// +optional
	AdmittedPerSecond *int64 `json:"admittedPerSecond,omitempty"`

	// rejectedPerSecond is what the fleet refused; in Shadow, what it would have.
	// +optional
	RejectedPerSecond *int64 `json:"rejectedPerSecond,omitempty"`

	// activeKeys is the largest number of keys that one sidecar tracks.
	// +optional
	ActiveKeys *int64 `json:"activeKeys,omitempty"`

	// windowEnd is the end of the last closed window that was measured, on the
	// store's clock.
	// +optional
	WindowEnd *metav1.MicroTime `json:"windowEnd,omitempty"`

	// window is the open window, of several rates the longest. Absent for
	// algorithms without windows, for limits with a key, whose pods name the keys
	// of a window when it is over, and for limits that draw from a
	// FederatedBudget.
	// +optional
	Window *WindowStatus `json:"window,omitempty"`

	// learningUntil is when the limit grants again. Until then the store grants
	// nothing of the open windows, because it may have forgotten what it granted
	// of them; the condition Learning names the reason and the cure. Absent while
	// it grants.
	// +optional
	LearningUntil *metav1.Time `json:"learningUntil,omitempty"`

	// overshoot is what windows admitted beyond their limit.
	// +optional
	Overshoot *Overshoot `json:"overshoot,omitempty"`

	// underUtilization is the budget that was there while requests were refused.
	// +optional
	UnderUtilization *UnderUtilization `json:"underUtilization,omitempty"`

	// requestsPerRoundTrip is how many requests were decided per round trip to the
	// store, with one decimal.
	// +optional
	// +kubebuilder:validation:MaxLength=24
	RequestsPerRoundTrip string `json:"requestsPerRoundTrip,omitempty"`

	// hottestKeys are the keys with the most requests in the last minutes, the
	// most first, at most 10. Each stands for a value by its hash: the first 32
	// hexadecimal digits of its SHA-256.
	// +optional
	// +listType=map
	// +listMapKey=hash
	// +kubebuilder:validation:MaxItems=10
	HottestKeys []HotKey `json:"hottestKeys,omitempty"`
}

// WindowStatus is what is known of a window that is open.
type WindowStatus struct {
	// used is what the fleet admitted in the window so far, as its pods reported
	// it. It is less than what was admitted by then, by what pods are yet to
	// report.
	// +required
	// +kubebuilder:validation:Minimum=0
	Used int64 `json:"used"`

	// limit of the window.
	// +required
	Limit int64 `json:"limit"`

	// remaining is limit − used, and 0 when more was used. Leased credits that
	// pods have not spent are part of it.
	// +required
	// +kubebuilder:validation:Minimum=0
	Remaining int64 `json:"remaining"`

	// startedAt is the start of the window, on the store's clock.
	// +required
	StartedAt metav1.MicroTime `json:"startedAt"`

	// resetsAt is the end of the window, on the store's clock.
	// +required
	ResetsAt metav1.MicroTime `json:"resetsAt"`

	// measuredAt is when this was counted.
	// +required
	MeasuredAt metav1.Time `json:"measuredAt"`
}

// HotKey is what was measured of one value of a limit's key.
type HotKey struct {
	// hash of the value. That of a key of several parts stands for all of them
	// with their lengths in bytes, such as 4:gold3:GET.
	// +required
	// +kubebuilder:validation:MaxLength=32
	Hash string `json:"hash"`

	// shared says that several values have this counter: that of the requests
	// without the key, or with several values of it (key.onMissing), or one
	// that values without room for a counter share (condition KeysFull).
	// +optional
	Shared bool `json:"shared,omitempty"`

	// admitted is what the fleet admitted since its pods started, about: a pod
	// keeps count of its hottest keys only.
	// +required
	// +kubebuilder:validation:Minimum=0
	Admitted int64 `json:"admitted"`

	// refused is what the fleet refused, counted alike; in Shadow, what it would
	// have.
	// +required
	// +kubebuilder:validation:Minimum=0
	Refused int64 `json:"refused"`

	// admittedPerMinute is what the fleet admitted in the last minutes, in units a
	// minute. Those of 5 minutes ago count half.
	// +optional
	// +kubebuilder:validation:Minimum=0
	AdmittedPerMinute *int64 `json:"admittedPerMinute,omitempty"`

	// refusedPerMinute is what the fleet refused in the last minutes, counted
	// alike; in Shadow, what it would have.
	// +optional
	// +kubebuilder:validation:Minimum=0
	RefusedPerMinute *int64 `json:"refusedPerMinute,omitempty"`

	// measuredAt is when this was counted.
	// +required
	MeasuredAt metav1.Time `json:"measuredAt"`
}

// Overshoot is what was admitted beyond what is promised. For a limit it is in
// units that windows admitted: beyond the limit, for TokenBucket and GCRA
// beyond the burst on top of it, for LeakyBucket beyond what may wait on top of
// it. For a pool it is the requests that were in flight beyond its limit, or
// beyond what the limit was while they drain.
type Overshoot struct {
	// bound is the most that the running configuration allows. For a policy it is
	// 0, and with leases that carry over pods · (batch − 1 + lowWater). With
	// onMemoryLoss Resume it is one more limit for each loss of memory of the
	// store while the window was open, and absent when the window admitted more
	// and it is not known how often that was. For a pool it is 0, and absent with
	// mode Shadow and handoff Occupancy, and while pods admit by themselves for
	// onCoordinatorOutage LocalOnly.
	// +optional
	Bound *int64 `json:"bound,omitempty"`

	// observed is that of the window that ended at windowEnd; of a pool the
	// largest that was measured for measuredAt.
	// +optional
	Observed *int64 `json:"observed,omitempty"`

	// worst is the largest observed since observedGeneration began; see
	// completeness. It outlives the leader that measured it.
	// +optional
	Worst *int64 `json:"worst,omitempty"`

	// completeness says what worst stands for; absent of a pool.
	// Complete: it is the largest of all windows since observedGeneration began.
	// AtLeast: of some windows not all is known, for example because a pod was
	// killed or cut off from the controller, or because the leader changed. They
	// may have admitted more.
	// +optional
	Completeness Completeness `json:"completeness,omitempty"`

	// excess is the most that a window since observedGeneration began admitted
	// beyond what bounds it; absent while none did, and of a pool.
	// +optional
	Excess *int64 `json:"excess,omitempty"`

	// worstTime is the end of that window, on the store's clock; of a pool when it
	// was measured.
	// +optional
	WorstTime *metav1.MicroTime `json:"worstTime,omitempty"`
}

// Completeness says whether a figure takes in all that it is about.
// +kubebuilder:validation:Enum=Complete;AtLeast
type Completeness string

// How complete a figure can be.
const (
	Complete Completeness = "Complete"
	AtLeast  Completeness = "AtLeast"
)

// UnderUtilization is the part of a limit that was left while requests were
// refused, in basis points of the limit (10000 is all of it).
type UnderUtilization struct {
	// observedBasisPoints is that of the window that ended at windowEnd; of a pool
	// what was measured for measuredAt.
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=10000
	ObservedBasisPoints *int32 `json:"observedBasisPoints,omitempty"`

	// worstBasisPoints is the largest observed since observedGeneration began.
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=10000
	WorstBasisPoints *int32 `json:"worstBasisPoints,omitempty"`
}

// NotMeasured is what a column shows when there is no measurement. It is never
// replaced by a zero.
const NotMeasured = "-"

// Summary holds ready-made strings for the columns that kubectl prints. A
// value that was not measured is "-".
type Summary struct {
	// limits is the first rate and the number of further ones, such as 100/1s +1.
	// +optional
	// +kubebuilder:default="-"
	// +kubebuilder:validation:MaxLength=64
	Limits string `json:"limits,omitempty"`

	// pods that acknowledged this generation / pods selected, such as 12/12.
	// +optional
	// +kubebuilder:default="-"
	// +kubebuilder:validation:MaxLength=64
	Pods string `json:"pods,omitempty"`

	// admitted per second over the fleet and all limits, such as 912/s.
	// +optional
	// +kubebuilder:default="-"
	// +kubebuilder:validation:MaxLength=64
	Admitted string `json:"admitted,omitempty"`

	// rejected per second over the fleet and all limits, such as 41/s.
	// +optional
	// +kubebuilder:default="-"
	// +kubebuilder:validation:MaxLength=64
	Rejected string `json:"rejected,omitempty"`

	// overshoot of the worst limit in the last window measured, observed ≤ bound,
	// such as 0 ≤ 0. A question mark behind it says that a newer window is over
	// and could not be measured.
	// +optional
	// +kubebuilder:default="-"
	// +kubebuilder:validation:MaxLength=64
	Overshoot string `json:"overshoot,omitempty"`

	// window is what was used of the open window, such as 812/1000, of the limit
	// that has the smallest part left; Learning while a limit grants nothing, as
	// the condition says.
	// +optional
	// +kubebuilder:default="-"
	// +kubebuilder:validation:MaxLength=64
	Window string `json:"window,omitempty"`

	// unused is the under-utilization of the worst limit, such as 1.2%. A question
	// mark behind it means what it means in overshoot.
	// +optional
	// +kubebuilder:default="-"
	// +kubebuilder:validation:MaxLength=64
	Unused string `json:"unused,omitempty"`

	// requestsPerRoundTrip over all limits, such as 97.3.
	// +optional
	// +kubebuilder:default="-"
	// +kubebuilder:validation:MaxLength=64
	RequestsPerRoundTrip string `json:"requestsPerRoundTrip,omitempty"`
}
