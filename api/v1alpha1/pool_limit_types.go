package v1alpha1

// PoolLimit is the range of a pool's limit.
// +kubebuilder:validation:XValidation:rule="!has(self.min) || self.min <= self.max",fieldPath=".min",message="min is above max: lower min, or raise max"
// +kubebuilder:validation:XValidation:rule="!has(self.initial) || self.initial <= self.max",fieldPath=".initial",message="initial is above max: lower initial, or raise max"
// +kubebuilder:validation:XValidation:rule="!has(self.initial) || !has(self.min) || self.min > self.max || self.initial >= self.min",fieldPath=".initial",message="initial is below min: raise initial, or lower min"
type PoolLimit struct {
	// min is the least that the limit falls to, 1 to max, by default 1. With fewer
	// slots than pods some pods have none, so choose at least the number of pods.
	// +optional
	// +kubebuilder:validation:Minimum=1
	Min *int64 `json:"min,omitempty"`

	// initial is the limit until latency was measured, from min to max, by default
	// 16 within this range.
	// +optional
	// +kubebuilder:validation:Minimum=1
	Initial *int64 `json:"initial,omitempty"`

	// max is the most that the limit rises to, 1 to 1000000; of algorithm Fixed
	// the limit itself.
	// +required
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=1000000
	Max int64 `json:"max"`
}

// The range of a limit where none is given.
const (
	DefaultMinConcurrency     = 1
	DefaultInitialConcurrency = 16
)

// PoolAlgorithm says how the limit follows from latency.
// +kubebuilder:validation:XValidation:rule="self.type != 'Fixed' || !has(self.baseline)",fieldPath=".baseline",reason=FieldValueForbidden,message="type Fixed measures no latency: remove baseline, or set type to Gradient2"
// +kubebuilder:validation:XValidation:rule="self.type != 'Fixed' || !has(self.tolerancePercent)",fieldPath=".tolerancePercent",reason=FieldValueForbidden,message="type Fixed measures no latency: remove tolerancePercent, or set type to Gradient2"
// +kubebuilder:validation:XValidation:rule="self.type != 'Fixed' || !has(self.ignore)",fieldPath=".ignore",reason=FieldValueForbidden,message="type Fixed measures no latency: remove ignore, or set type to Gradient2"
// +kubebuilder:validation:XValidation:rule="!has(self.smoothingPercent) || self.type == 'Gradient2'",fieldPath=".smoothingPercent",reason=FieldValueForbidden,message="smoothingPercent is read only with type Gradient2: remove it, or set type to Gradient2"
// +kubebuilder:validation:XValidation:rule="!has(self.backoffPercent) || self.type == 'AIMD'",fieldPath=".backoffPercent",reason=FieldValueForbidden,message="backoffPercent is read only with type AIMD: remove it, or set type to AIMD"
type PoolAlgorithm struct {
	// type names how the limit is found.
	// Gradient2, the default, moves it with the ratio of latency without load to
	// latency now: it grows while requests are as fast as without load, and
	// shrinks in proportion when they queue in the backend.
	// AIMD adds one while requests are fast, and takes a part away when they are
	// slow or fail.
	// Fixed keeps it at limit.max.
	// +optional
	// +kubebuilder:default=Gradient2
	Type PoolAlgorithmType `json:"type,omitempty"`

	// baseline says how latency without load is known, by default Measured.
	// +optional
	Baseline *Baseline `json:"baseline,omitempty"`

	// smoothingPercent is how far Gradient2 goes towards a new limit in one step,
	// 1 to 100, by default 20. Less is steadier and slower. A pod takes a step in
	// about two latencies, and at most one a beat.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=100
	SmoothingPercent *int32 `json:"smoothingPercent,omitempty"`

	// tolerancePercent is the latency, in percent of the latency without load, up
	// to which the backend does not count as loaded, 100 to 1000, by default 150.
	// More of it keeps a longer queue in the backend.
	// +optional
	// +kubebuilder:validation:Minimum=100
	// +kubebuilder:validation:Maximum=1000
	TolerancePercent *int32 `json:"tolerancePercent,omitempty"`

	// backoffPercent is what AIMD leaves of the limit when a request was slow or
	// failed, 50 to 99, by default 90.
	// +optional
	// +kubebuilder:validation:Minimum=50
	// +kubebuilder:validation:Maximum=99
	BackoffPercent *int32 `json:"backoffPercent,omitempty"`

	// ignore names requests whose latency says nothing of the backend's load, such
	// as long polls: they take slots, and are not measured. At most 8.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=8
	// +kubebuilder:validation:XValidation:rule="!self.exists(m, has(m.descriptors))",reason=FieldValueForbidden,message="descriptors are of calls of the rate limit service, which need no slot: remove them, or move them to a RateLimitPolicy"
	Ignore []Match `json:"ignore,omitempty"`
}

// Defaults of an algorithm.
const (
	DefaultSmoothingPercent = 20
	DefaultTolerancePercent = 150
	DefaultBackoffPercent   = 90
)

// PoolAlgorithmType names how a pool's limit is found.
// +kubebuilder:validation:Enum=Gradient2;AIMD;Fixed
type PoolAlgorithmType string

// The algorithms of a pool.
const (
	Gradient2Algorithm PoolAlgorithmType = "Gradient2"
	AIMDAlgorithm      PoolAlgorithmType = "AIMD"
	FixedAlgorithm     PoolAlgorithmType = "Fixed"
)

// Baseline says how latency without load is known.
// +kubebuilder:validation:XValidation:rule="!has(self.samples) || self.type == 'Rolling'",fieldPath=".samples",reason=FieldValueForbidden,message="samples is read only with type Rolling: remove it, or set type to Rolling"
// +kubebuilder:validation:XValidation:rule="!has(self.interval) || self.type == 'Measured'",fieldPath=".interval",reason=FieldValueForbidden,message="interval is read only with type Measured: remove it, or set type to Measured"
// +kubebuilder:validation:XValidation:rule="!has(self.probeLimit) || self.type == 'Measured'",fieldPath=".probeLimit",reason=FieldValueForbidden,message="probeLimit is read only with type Measured: remove it, or set type to Measured"
// +kubebuilder:validation:XValidation:rule="!has(self.probeSamples) || self.type == 'Measured'",fieldPath=".probeSamples",reason=FieldValueForbidden,message="probeSamples is read only with type Measured: remove it, or set type to Measured"
type Baseline struct {
	// type names the way.
	// Measured, the default, takes what pods measure while they hold their load
	// down for a moment, all at once. They do that only while the limit is in use
	// and requests take longer than the baseline: a fleet that the backend keeps
	// up with never does.
	// Rolling takes the smallest latency of a pod's latest requests. It holds no
	// load down, but takes a queue in the backend that never empties for its own
	// latency, so under load that lasts the limit creeps up.
	// +optional
	// +kubebuilder:default=Measured
	Type BaselineType `json:"type,omitempty"`

	// samples is over how many requests of a pod a Rolling baseline is the
	// smallest latency, 1 to 10000, by default 100.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=10000
	Samples *int32 `json:"samples,omitempty"`

	// interval from one measurement to the next at least, 100ms to 744h, by
	// default 10s: more than a hundred times the latency.
	// +optional
	Interval Duration `json:"interval,omitempty"`

	// probeLimit is the most requests that the pods have in flight together while
	// they measure, 1 to 1000000, by default half of the number that leaves no
	// queue in the backend, by the limit in force. Each pod may have one, though.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=1000000
	ProbeLimit *int64 `json:"probeLimit,omitempty"`

	// probeSamples is how many requests of a pod a measurement takes, 1 to 1000,
	// by default 20. Less is shorter, and errs more where latency varies.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=1000
	ProbeSamples *int32 `json:"probeSamples,omitempty"`
}

// BaselineType names how latency without load is known.
// +kubebuilder:validation:Enum=Measured;Rolling
type BaselineType string

// The types of a baseline.
const (
	MeasuredBaseline BaselineType = "Measured"
	RollingBaseline  BaselineType = "Rolling"
)

// Defaults of a baseline.
const (
	DefaultBaselineSamples  = 100
	DefaultBaselineInterval = "10s"
	DefaultProbeSamples     = 20
)

// Aggregate says how the limit follows from what single pods infer.
// +kubebuilder:validation:Enum=Median;Min
type Aggregate string

// The aggregates.
const (
	MedianAggregate Aggregate = "Median"
	MinAggregate    Aggregate = "Min"
)
