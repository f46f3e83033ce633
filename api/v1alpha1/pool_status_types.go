package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// ConcurrencyPoolStatus is what the fleet acknowledged and what was measured
// there. Every figure is a measurement; one that could not be taken is absent.
type ConcurrencyPoolStatus struct {
	// observedGeneration is the generation of the spec that this status speaks of.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// conditions are Accepted, Programmed, WithinBound, CoordinatorReachable,
	// Saturated, Ready and, while it is True, Stalled.
	// +optional
	// +listType=map
	// +listMapKey=type
	// +kubebuilder:validation:MaxItems=8
	// +kubebuilder:default={{type: "Accepted", status: "Unknown", reason: "Pending", message: "waiting for the controller", lastTransitionTime: "1970-01-01T00:00:00Z"},{type: "Programmed", status: "Unknown", reason: "Pending", message: "waiting for the controller", lastTransitionTime: "1970-01-01T00:00:00Z"},{type: "Ready", status: "Unknown", reason: "Pending", message: "waiting for the controller", lastTransitionTime: "1970-01-01T00:00:00Z"}}
	Conditions []metav1.Condition `json:"conditions,omitempty"`

	// measuredAt is when the figures of this status were last taken.
	// +optional
	MeasuredAt *metav1.Time `json:"measuredAt,omitempty"`

	// enforcement counts the pods that the pool applies to.
	// +optional
	Enforcement *Enforcement `json:"enforcement,omitempty"`

	// limit is how many requests the pods may have in flight together now.
	// +optional
	Limit *PoolLimitStatus `json:"limit,omitempty"`

	// inFlight is how many requests the pods reported in flight: those that have a
	// slot and, in mode Shadow, those that were let through without one. Requests
	// that need none are not counted.
	// +optional
	InFlight *int64 `json:"inFlight,omitempty"`

	// granted is the sum of all shares: at most limit.current, less while shares
	// change hands or the limit rises.
	// +optional
	Granted *int64 `json:"granted,omitempty"`

	// queued is how many requests wait for a slot.
	// +optional
	Queued *int64 `json:"queued,omitempty"`

	// holders is how many sidecars have a share or ask for one. It is more than
	// the pods for up to one leaseTTL after a pod was restarted or died.
	// +optional
	Holders *int32 `json:"holders,omitempty"`

	// fenced is how many of the pods have no share, and refuse every request,
	// because the coordinator did not answer them in time, or never did.
	// +optional
	Fenced *int32 `json:"fenced,omitempty"`

	// admittedPerSecond is what the pods admitted.
	// +optional
	AdmittedPerSecond *int64 `json:"admittedPerSecond,omitempty"`

	// rejectedPerSecond is what the pods refused; in Shadow, what they would have.
	// +optional
	RejectedPerSecond *int64 `json:"rejectedPerSecond,omitempty"`

	// latency is what the limit follows from, the median over the pods. Absent
	// with algorithm Fixed.
	// +optional
	Latency *PoolLatency `json:"latency,omitempty"`

	// overshoot is what was in flight beyond the limit.
	// +optional
	Overshoot *Overshoot `json:"overshoot,omitempty"`

	// underUtilization is the part of the limit that was free while requests were
	// refused.
	// +optional
	UnderUtilization *UnderUtilization `json:"underUtilization,omitempty"`

	// keys are the figures of the limit per value of spec.key. Absent without a
	// key.
	// +optional
	Keys *PoolKeysStatus `json:"keys,omitempty"`

	// partitions are the figures of each partition, in the order of the spec.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=16
	Partitions []PartitionStatus `json:"partitions,omitempty"`

	// shares are those of single pods, the largest first, at most 32.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=32
	Shares []PodShare `json:"shares,omitempty"`

	// summary holds the columns that kubectl prints.
	// +optional
	// +kubebuilder:default={}
	Summary PoolSummary `json:"summary,omitzero"`
}

// PoolLimitStatus is the limit of a pool, and why it is where it is.
type PoolLimitStatus struct {
	// current is the limit.
	// +required
	// +kubebuilder:validation:Minimum=0
	Current int64 `json:"current"`

	// fixedBy says what keeps the limit where it is.
	// Algorithm: what the pods infer from latency.
	// Min: they infer less than limit.min.
	// Max: they infer more than limit.max, or nothing is inferred.
	// +required
	FixedBy LimitFixedBy `json:"fixedBy"`

	// reason is a sentence that says why the limit is where it is.
	// +optional
	// +kubebuilder:validation:MaxLength=1024
	Reason string `json:"reason,omitempty"`
}

// LimitFixedBy says what keeps a limit where it is.
// +kubebuilder:validation:Enum=Algorithm;Min;Max
type LimitFixedBy string

// Causes that keep a limit where it is.
const (
	FixedByAlgorithm LimitFixedBy = "Algorithm"
	FixedByMin       LimitFixedBy = "Min"
	FixedByMax       LimitFixedBy = "Max"
)

// PoolLatency is what a pool's limit follows from.
type PoolLatency struct {
	// baselineMicroseconds is latency without load.
	// +optional
	// +kubebuilder:validation:Minimum=0
	BaselineMicroseconds *int64 `json:"baselineMicroseconds,omitempty"`

	// currentMicroseconds is latency now.
	// +optional
	// +kubebuilder:validation:Minimum=0
	CurrentMicroseconds *int64 `json:"currentMicroseconds,omitempty"`
}

// PartitionStatus is what was measured of one partition, over all pods.
type PartitionStatus struct {
	// name of the partition in the spec.
	// +required
	// +kubebuilder:validation:MaxLength=63
	Name string `json:"name"`

	// guaranteed is how many slots are kept for it.
	// +optional
	Guaranteed *int64 `json:"guaranteed,omitempty"`

	// inFlight is how many of its requests are in flight.
	// +optional
	InFlight *int64 `json:"inFlight,omitempty"`

	// rejectedPerSecond is what was refused of it; in Shadow, what would have
	// been.
	// +optional
	RejectedPerSecond *int64 `json:"rejectedPerSecond,omitempty"`
}

// PoolKeysStatus is what was measured of the limit per value of a key.
type PoolKeysStatus struct {
	// limit is how many requests of one value may be in flight together.
	// +required
	// +kubebuilder:validation:Minimum=0
	Limit int64 `json:"limit"`

	// inFlight adds up, over all pods, the requests in flight of the value that
	// has the most in that pod. No value has more, but for requests that took no
	// slot of it: in mode Shadow, or from before the key was added.
	// +optional
	// +kubebuilder:validation:Minimum=0
	InFlight *int64 `json:"inFlight,omitempty"`

	// queued is how many requests wait for a slot of their value.
	// +optional
	// +kubebuilder:validation:Minimum=0
	Queued *int64 `json:"queued,omitempty"`

	// smallestShare is how many requests of one value the pod with the smallest
	// part of the limit may have in flight. With 0 it refuses every request that
	// has the key.
	// +optional
	// +kubebuilder:validation:Minimum=0
	SmallestShare *int64 `json:"smallestShare,omitempty"`

	// rejectedPerSecond is what the pods refused because of this limit; in Shadow,
	// what they would have. It is not counted in the pool's.
	// +optional
	RejectedPerSecond *int64 `json:"rejectedPerSecond,omitempty"`

	// missingPerSecond is how many requests the pods refused with 400, because
	// they lack a part of the key or have several values of it that differ; in
	// Shadow, how many they would have. It is counted in no other figure. Absent
	// unless key.onMissing is Reject.
	// +optional
	// +kubebuilder:validation:Minimum=0
	MissingPerSecond *int64 `json:"missingPerSecond,omitempty"`

	// overshoot is what was in flight of a value beyond the limit, at most, of
	// requests that took a slot of it.
	// +optional
	Overshoot *Overshoot `json:"overshoot,omitempty"`
}

// PodShare is what one pod may use of the limit.
type PodShare struct {
	// pod is its name.
	// +required
	// +kubebuilder:validation:MaxLength=253
	Pod string `json:"pod"`

	// share of the limit, 0 while the pod is fenced.
	// +required
	// +kubebuilder:validation:Minimum=0
	Share int64 `json:"share"`

	// inFlight is how many requests the pod has in flight. It is more than share
	// while the pod drains down to it, and in mode Shadow.
	// +required
	// +kubebuilder:validation:Minimum=0
	InFlight int64 `json:"inFlight"`

	// inferred is the limit that the pod infers from latency. Absent with
	// algorithm Fixed, and before anything was measured.
	// +optional
	// +kubebuilder:validation:Minimum=0
	Inferred *int64 `json:"inferred,omitempty"`

	// fenced says that the pod has no share because the coordinator did not answer
	// it in time, or never did.
	// +optional
	Fenced bool `json:"fenced,omitempty"`
}

// PoolSummary holds ready-made strings for the columns that kubectl prints. A
// value that was not measured is "-".
type PoolSummary struct {
	// pods that acknowledged this generation / pods that the pool applies to, such
	// as 12/12.
	// +optional
	// +kubebuilder:default="-"
	// +kubebuilder:validation:MaxLength=64
	Pods string `json:"pods,omitempty"`

	// limit of the fleet, such as 412.
	// +optional
	// +kubebuilder:default="-"
	// +kubebuilder:validation:MaxLength=64
	Limit string `json:"limit,omitempty"`

	// inFlight is how many requests the pods have in flight, such as 380.
	// +optional
	// +kubebuilder:default="-"
	// +kubebuilder:validation:MaxLength=64
	InFlight string `json:"inFlight,omitempty"`

	// overshoot, observed ≤ bound, such as 0 ≤ 0.
	// +optional
	// +kubebuilder:default="-"
	// +kubebuilder:validation:MaxLength=64
	Overshoot string `json:"overshoot,omitempty"`

	// unused is the under-utilization, such as 1.2%.
	// +optional
	// +kubebuilder:default="-"
	// +kubebuilder:validation:MaxLength=64
	Unused string `json:"unused,omitempty"`

	// latency now / without load, such as 26ms/21ms.
	// +optional
	// +kubebuilder:default="-"
	// +kubebuilder:validation:MaxLength=64
	Latency string `json:"latency,omitempty"`

	// saturated is No, or why requests find no slot: AtLimit, AtMax, AtMin, or
	// Unreachable when pods get no answer from the coordinator.
	// +optional
	// +kubebuilder:default="-"
	// +kubebuilder:validation:MaxLength=64
	Saturated string `json:"saturated,omitempty"`
}
