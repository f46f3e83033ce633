package v1alpha1

// Allocation says which share of the limit a pod is meant to have.
// +kubebuilder:validation:Enum=EqualSplit;DemandProportional
type Allocation string

// The allocations.
const (
	EqualSplitAllocation         Allocation = "EqualSplit"
	DemandProportionalAllocation Allocation = "DemandProportional"
)

// Handoff says when what one pod gave up may be granted to another.
// +kubebuilder:validation:Enum=Acknowledged;Occupancy
type Handoff string

// The handoffs.
const (
	AcknowledgedHandoff Handoff = "Acknowledged"
	OccupancyHandoff    Handoff = "Occupancy"
)

// Heartbeat says how often pods ask for their share, and how long one lasts.
// +kubebuilder:validation:XValidation:rule="![self.interval, self.leaseTTL].all(d, d.matches('^([0-9]{1,5}(h|m|s|ms)){1,4}$')) || duration(self.leaseTTL) > duration(self.interval)",fieldPath=".leaseTTL",message="leaseTTL is not longer than interval, so every share would expire before the next beat renews it: shorten interval, or raise leaseTTL to twice interval, which cannot be undone"
// +kubebuilder:validation:XValidation:rule="!has(self.minInterval) || ![self.interval, self.minInterval].all(d, d.matches('^([0-9]{1,5}(h|m|s|ms)){1,4}$')) || duration(self.minInterval) <= duration(self.interval)",fieldPath=".minInterval",message="minInterval is longer than interval, so that no beat could come early: shorten minInterval, or remove it to have a tenth of interval"
// +kubebuilder:validation:XValidation:rule="![self.leaseTTL, oldSelf.leaseTTL].all(d, d.matches('^([0-9]{1,5}(h|m|s|ms)){1,4}$')) || duration(self.leaseTTL) >= duration(oldSelf.leaseTTL)",fieldPath=".leaseTTL",message="leaseTTL can be raised, not lowered, because a coordinator that has lost its memory waits for one leaseTTL until no older share is in use: set it back, or delete the pool, wait for the old leaseTTL and create it again"
type Heartbeat struct {
	// interval from one beat of a pod to the next, at least 10ms, by default 1s,
	// and shorter than leaseTTL. A shorter one follows load sooner and asks the
	// coordinator more often.
	// +optional
	// +kubebuilder:default="1s"
	Interval BeatInterval `json:"interval,omitempty"`

	// leaseTTL is how long a share lasts from the beat that it answers, 100ms to
	// 1m, by default 2s, and longer than interval. A pod that dies gives its share
	// back after it. It can be raised, not lowered.
	// +optional
	// +kubebuilder:default="2s"
	LeaseTTL LeaseTTL `json:"leaseTTL,omitempty"`

	// eager says whether a pod also beats when that frees or fills a share.
	// Enabled, the default: it does, so that a share changes hands in about a
	// round trip. Nothing is added while shares stand still.
	// Disabled: it beats once per interval only.
	// +optional
	// +kubebuilder:default=Enabled
	Eager EagerMode `json:"eager,omitempty"`

	// minInterval is the least time from one beat to the next, 1ms to interval, by
	// default a tenth of interval: to an eager one, or to the first repetition of
	// one that the coordinator did not answer.
	// +optional
	MinInterval Span `json:"minInterval,omitempty"`
}

// EagerMode says whether a pod beats when that frees or fills a share.
// +kubebuilder:validation:Enum=Enabled;Disabled
type EagerMode string

// The eager modes.
const (
	EagerEnabled  EagerMode = "Enabled"
	EagerDisabled EagerMode = "Disabled"
)

// SelfFence says how a pod stops that could not renew its share.
type SelfFence struct {
	// margin is how long before its share may be granted to others a pod stops to
	// use it, at least 1ms, shorter than leaseTTL − interval, by default half of
	// that. With onFenced Drain requests that take longer than margin may still
	// run when others use the share: choose as much as the slowest takes if the
	// bound is to hold while pods are cut off, too.
	// +optional
	Margin Span `json:"margin,omitempty"`

	// onFenced says what happens to the requests in flight then.
	// Drain, the default, lets them finish.
	// Abort ends them.
	// +optional
	// +kubebuilder:default=Drain
	OnFenced FenceAction `json:"onFenced,omitempty"`
}

// FenceAction says what happens to requests in flight when a pod stops.
// +kubebuilder:validation:Enum=Drain;Abort
type FenceAction string

// The fence actions.
const (
	DrainAction FenceAction = "Drain"
	AbortAction FenceAction = "Abort"
)

// OnCoordinatorOutage says what a pod does while the coordinator does not
// answer.
type OnCoordinatorOutage struct {
	// action decides requests once the share has expired.
	// FailClosed, the default, refuses them: what is in flight stays within the
	// limit.
	// LocalOnly admits as many as the pod infers by itself that the backend bears,
	// so that the pods that are cut off may exceed the limit together.
	// +optional
	// +kubebuilder:default=FailClosed
	Action OutageAction `json:"action,omitempty"`
}

// OutageAction is what a pod does while the coordinator does not answer.
// +kubebuilder:validation:Enum=FailClosed;LocalOnly
type OutageAction string

// The outage actions.
const (
	FailClosedAction OutageAction = "FailClosed"
	LocalOnlyAction  OutageAction = "LocalOnly"
)

// BeatInterval is the time from one beat to the next.
// +kubebuilder:validation:MaxLength=32
// +kubebuilder:validation:XValidation:rule="self.matches('^([0-9]{1,5}(h|m|s|ms)){1,4}$') && duration(self) >= duration('10ms')",message="not a duration of 10ms or more: write whole numbers of m, s and ms, such as 500ms or 1s"
type BeatInterval string

// LeaseTTL is how long a share lasts.
// +kubebuilder:validation:MaxLength=32
// +kubebuilder:validation:XValidation:rule="self.matches('^([0-9]{1,5}(h|m|s|ms)){1,4}$') && duration(self) >= duration('100ms') && duration(self) <= duration('1m')",message="not a duration from 100ms to 1m: write whole numbers of m, s and ms, such as 500ms or 2s"
type LeaseTTL string

// Span is a part of the time that a share lasts.
// +kubebuilder:validation:MaxLength=32
// +kubebuilder:validation:XValidation:rule="self.matches('^([0-9]{1,5}(h|m|s|ms)){1,4}$') && duration(self) >= duration('1ms')",message="not a duration of 1ms or more: write whole numbers of m, s and ms, such as 100ms or 1s"
type Span string
