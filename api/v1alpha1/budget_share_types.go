package v1alpha1

// BudgetRate is an amount per window, without a burst. Windows are aligned to
// multiples of their length on the coordinator's clock.
type BudgetRate struct {
	// limit is how many units one window admits over all clusters, 1 to
	// 1000000000000.
	// +required
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=1000000000000
	Limit int64 `json:"limit"`

	// window is the length of the window, 100ms to 744h (31 days): whole numbers
	// of h, m, s and ms, such as 500ms, 10s or 1h30m.
	// +required
	Window Duration `json:"window"`
}

// BudgetMember is one cluster that shares the budget.
// +kubebuilder:validation:XValidation:rule="!has(self.lendingLimit) || self.lendingLimit <= self.nominal",fieldPath=".lendingLimit",message="lendingLimit is a part of nominal, and more than that: lower it to at most nominal, or raise nominal"
type BudgetMember struct {
	// name of the member, a DNS label of at most 63 characters: what its
	// controller's flag --cluster-name says.
	// +required
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:XValidation:rule="self.matches('^[a-z0-9]([-a-z0-9]*[a-z0-9])?$')",message="not a DNS label: use lower-case letters, digits and dashes, starting and ending with a letter or digit, such as eu-west"
	Name string `json:"name"`

	// weight of the member, 1 to 1000, by default 1: its part of the limit beyond
	// all nominal shares. Limits with fairness weigh as much as the tenants that
	// are active in the member instead.
	// +optional
	// +kubebuilder:default=1
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=1000
	Weight int32 `json:"weight,omitempty"`

	// nominal is how many units of each window the member is guaranteed, by
	// default 0.
	// All members together have at most rate.limit.
	// +optional
	// +kubebuilder:default=0
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=1000000000000
	Nominal int64 `json:"nominal"`

	// borrowingLimit is the most that the member gets of a window beyond nominal.
	// Absent: as much as others leave.
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=1000000000000
	BorrowingLimit *int64 `json:"borrowingLimit,omitempty"`

	// lendingLimit is how much of nominal others may have while the member does
	// not use it, at most nominal. Absent: all of it; with onCoordinatorOutage
	// Nominal none.
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=1000000000000
	LendingLimit *int64 `json:"lendingLimit,omitempty"`
}

// BudgetAllocation says how much of a window a member may get.
// +kubebuilder:validation:Enum=FairShare;FirstCome;Static
type BudgetAllocation string

// The allocations of a budget.
const (
	FairShareAllocation BudgetAllocation = "FairShare"
	FirstComeAllocation BudgetAllocation = "FirstCome"
	StaticAllocation    BudgetAllocation = "Static"
)
