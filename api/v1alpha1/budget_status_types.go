package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// FederatedBudgetStatus is what this cluster knows of the budget. Every figure
// is a measurement; one that could not be taken is absent.
type FederatedBudgetStatus struct {
	// observedGeneration is the generation of the spec that this status speaks of.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// conditions are Accepted, Connected, Learning, WithinBound, Ready and, while
	// they are True, KeysFull and Stalled.
	// +optional
	// +listType=map
	// +listMapKey=type
	// +kubebuilder:validation:MaxItems=8
	// +kubebuilder:default={{type: "Accepted", status: "Unknown", reason: "Pending", message: "waiting for the controller", lastTransitionTime: "1970-01-01T00:00:00Z"},{type: "Connected", status: "Unknown", reason: "Pending", message: "waiting for the controller", lastTransitionTime: "1970-01-01T00:00:00Z"},{type: "Ready", status: "Unknown", reason: "Pending", message: "waiting for the controller", lastTransitionTime: "1970-01-01T00:00:00Z"}}
	Conditions []metav1.Condition `json:"conditions,omitempty"`

	// measuredAt is when the figures of this status were last taken.
	// +optional
	MeasuredAt *metav1.Time `json:"measuredAt,omitempty"`

	// self is the member that this cluster is.
	// +optional
	// +kubebuilder:validation:MaxLength=63
	Self string `json:"self,omitempty"`

	// root is the coordinator that divides the limit.
	// +optional
	Root *BudgetRoot `json:"root,omitempty"`

	// allocation is how the open window was divided when the coordinator answered
	// last. Absent with a key: each value is divided by itself.
	// +optional
	Allocation *BudgetDivision `json:"allocation,omitempty"`

	// members are the figures of each member, in the order of their names.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=64
	Members []BudgetMemberStatus `json:"members,omitempty"`

	// coordination is what this cluster's share of the budget costs in round
	// trips.
	// +optional
	Coordination *BudgetCoordination `json:"coordination,omitempty"`

	// keys are the figures of a budget with a key.
	// +optional
	Keys *BudgetKeysStatus `json:"keys,omitempty"`

	// windowEnd is the end of the last closed window that was measured, on the
	// coordinator's clock.
	// +optional
	WindowEnd *metav1.MicroTime `json:"windowEnd,omitempty"`

	// overshoot is what all clusters together admitted beyond the limit; with a
	// key, of the value that exceeded it the most.
	// +optional
	Overshoot *Overshoot `json:"overshoot,omitempty"`

	// underUtilization is the part of the limit that was there while requests were
	// refused in some cluster; with a key, of the value with the largest.
	// +optional
	UnderUtilization *UnderUtilization `json:"underUtilization,omitempty"`

	// additionalRates are the figures of each of spec.additionalRates, from the
	// shortest window to the longest. The figures beside them are those of
	// spec.rate; conditions and summary speak of all rates.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=3
	AdditionalRates []BudgetRateStatus `json:"additionalRates,omitempty"`

	// summary holds the columns that kubectl prints.
	// +optional
	// +kubebuilder:default={}
	Summary BudgetSummary `json:"summary,omitzero"`
}

// BudgetRateStatus are the figures of one of several rates. They mean what
// those of the status mean.
type BudgetRateStatus struct {
	// rate in short, such as 10k/24h.
	// +required
	// +kubebuilder:validation:MaxLength=64
	Rate string `json:"rate"`

	// allocation is how the open window was divided when the coordinator answered
	// last. Absent with a key.
	// +optional
	Allocation *BudgetDivision `json:"allocation,omitempty"`

	// windowEnd is the end of the last closed window that was measured, on the
	// coordinator's clock.
	// +optional
	WindowEnd *metav1.MicroTime `json:"windowEnd,omitempty"`

	// overshoot is what all clusters together admitted beyond the limit.
	// +optional
	Overshoot *Overshoot `json:"overshoot,omitempty"`

	// underUtilization is the part of the limit that was there while requests were
	// refused in some cluster, by this rate or by another.
	// +optional
	UnderUtilization *UnderUtilization `json:"underUtilization,omitempty"`
}

// BudgetRoot is the coordinator that divides the limit.
type BudgetRoot struct {
	// member is the hub. Absent where the coordinator is a Redis or a Postgres,
	// and while it is not known.
	// +optional
	// +kubebuilder:validation:MaxLength=63
	Member string `json:"member,omitempty"`

	// address by which this cluster reaches the coordinator. Absent on the hub.
	// +optional
	// +kubebuilder:validation:MaxLength=4352
	Address string `json:"address,omitempty"`

	// term of the coordinator's memory. It rises with each that begins.
	// +optional
	// +kubebuilder:validation:Minimum=0
	Term int64 `json:"term,omitempty"`

	// since is when that memory began.
	// +optional
	Since *metav1.MicroTime `json:"since,omitempty"`

	// state of the root, as this cluster sees it.
	// Leading: this cluster divides the limit.
	// Following: another does, or a server.
	// Learning: the root is known, and its memory is younger than the open window,
	// so it grants nothing of that window.
	// Unknown: it did not answer lately.
	// +required
	State RootState `json:"state"`
}

// RootState is how a cluster sees the root of a budget.
// +kubebuilder:validation:Enum=Leading;Following;Learning;Unknown
type RootState string

// The states of a root.
const (
	RootLeading   RootState = "Leading"
	RootFollowing RootState = "Following"
	RootLearning  RootState = "Learning"
	RootUnknown   RootState = "Unknown"
)

// BudgetDivision is how the open window is divided.
type BudgetDivision struct {
	// window is when the open window began, on the coordinator's clock.
	// +required
	Window metav1.MicroTime `json:"window"`

	// limit of the window: the smallest that was in force while it was open.
	// +required
	// +kubebuilder:validation:Minimum=0
	Limit int64 `json:"limit"`

	// granted is how many units members were granted and did not give back.
	// +required
	// +kubebuilder:validation:Minimum=0
	Granted int64 `json:"granted"`

	// kept is how many units beyond that are kept for members that may ask for
	// them.
	// +required
	// +kubebuilder:validation:Minimum=0
	Kept int64 `json:"kept"`

	// unallocated is the number of units left for any member that asks.
	// +required
	// +kubebuilder:validation:Minimum=0
	Unallocated int64 `json:"unallocated"`
}

// BudgetMemberStatus is what is known of one member.
type BudgetMemberStatus struct {
	// name of the member in the spec.
	// +required
	// +kubebuilder:validation:MaxLength=63
	Name string `json:"name"`

	// state of the member, as the coordinator sees it.
	// Connected: it was heard of lately.
	// Silent: it was heard of, and not lately. A member without requests falls
	// silent, too.
	// Never: the coordinator's memory has not heard of it.
	// +required
	State MemberState `json:"state"`

	// granted is how many units of the open window the member was granted and did
	// not give back. Absent with a key.
	// +optional
	// +kubebuilder:validation:Minimum=0
	Granted *int64 `json:"granted,omitempty"`

	// wanted is how many units of the open window the member says it wants. Absent
	// with a key.
	// +optional
	// +kubebuilder:validation:Minimum=0
	Wanted *int64 `json:"wanted,omitempty"`

	// slice is how many units of each window the member may use without asking;
	// with a key, of each value.
	// +optional
	// +kubebuilder:validation:Minimum=0
	Slice *int64 `json:"slice,omitempty"`

	// used is how many units the member admitted in the window that ended at
	// windowEnd. Absent until it reported them, and with a key.
	// +optional
	// +kubebuilder:validation:Minimum=0
	Used *int64 `json:"used,omitempty"`

	// lastSeenTime is when the coordinator heard of it last.
	// +optional
	LastSeenTime *metav1.Time `json:"lastSeenTime,omitempty"`
}

// MemberState is how the coordinator sees a member.
// +kubebuilder:validation:Enum=Connected;Silent;Never
type MemberState string

// The states of a member.
const (
	MemberConnected MemberState = "Connected"
	MemberSilent    MemberState = "Silent"
	MemberNever     MemberState = "Never"
)

// BudgetCoordination is what a cluster's share of a budget costs in round
// trips.
type BudgetCoordination struct {
	// leasesPerSecond is how often this cluster asks the coordinator, with one
	// decimal.
	// +optional
	// +kubebuilder:validation:MaxLength=24
	LeasesPerSecond string `json:"leasesPerSecond,omitempty"`

	// unitsPerLease is how many units it is granted per round trip, with one
	// decimal.
	// +optional
	// +kubebuilder:validation:MaxLength=24
	UnitsPerLease string `json:"unitsPerLease,omitempty"`
}

// BudgetKeysStatus are the figures of a budget with a key.
type BudgetKeysStatus struct {
	// inUse is how many counters the hub had for values in the open window, or in
	// the one before when those were more, when it last granted this cluster
	// units. Absent while this cluster asks for none, and where a Redis or
	// Postgres keeps the budget.
	// +optional
	// +kubebuilder:validation:Minimum=0
	InUse *int64 `json:"inUse,omitempty"`

	// inCluster is how many values the leading controller of this cluster
	// remembers.
	// +required
	// +kubebuilder:validation:Minimum=0
	InCluster int64 `json:"inCluster"`
}

// BudgetSummary holds ready-made strings for the columns that kubectl prints.
// A value that was not measured is "-".
type BudgetSummary struct {
	// limit of the budget, such as 100k/1s, and of each additional rate, such as
	// 100/1s, 10k/24h. So it is with granted, used, overshoot and unused.
	// +optional
	// +kubebuilder:default="-"
	// +kubebuilder:validation:MaxLength=64
	Limit string `json:"limit,omitempty"`

	// members that the coordinator heard of lately / members, such as 2/2.
	// +optional
	// +kubebuilder:default="-"
	// +kubebuilder:validation:MaxLength=64
	Members string `json:"members,omitempty"`

	// granted is the part of the limit that was granted in the last window
	// measured, such as 97%.
	// +optional
	// +kubebuilder:default="-"
	// +kubebuilder:validation:MaxLength=64
	Granted string `json:"granted,omitempty"`

	// used is the part of the limit that all clusters admitted in it, such as 91%.
	// +optional
	// +kubebuilder:default="-"
	// +kubebuilder:validation:MaxLength=64
	Used string `json:"used,omitempty"`

	// overshoot in the last window measured, observed ≤ bound, such as 0 ≤ 0. A
	// question mark behind it says that a newer window is over and could not be
	// measured.
	// +optional
	// +kubebuilder:default="-"
	// +kubebuilder:validation:MaxLength=64
	Overshoot string `json:"overshoot,omitempty"`

	// unused is the under-utilization, such as 0.9%. A question mark behind it
	// means what it means in overshoot.
	// +optional
	// +kubebuilder:default="-"
	// +kubebuilder:validation:MaxLength=64
	Unused string `json:"unused,omitempty"`

	// root is the coordinator that divides the limit: the hub's name, or Redis or
	// Postgres.
	// +optional
	// +kubebuilder:default="-"
	// +kubebuilder:validation:MaxLength=64
	Root string `json:"root,omitempty"`

	// unitsPerLease of this cluster, such as 161.3.
	// +optional
	// +kubebuilder:default="-"
	// +kubebuilder:validation:MaxLength=64
	UnitsPerLease string `json:"unitsPerLease,omitempty"`
}
