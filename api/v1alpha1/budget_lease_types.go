package v1alpha1

// BudgetBatch says how much a cluster asks the coordinator for at once.
type BudgetBatch struct {
	// type says how the size is found.
	// Adaptive, the default, learns it from demand: large enough to ask seldom,
	// small enough to leave little unspent.
	// Fixed always asks for size, or for as much as is needed at once when that is
	// more.
	// +optional
	// +kubebuilder:default=Adaptive
	Type BatchType `json:"type,omitempty"`

	// size is how many units Fixed asks for, and what Adaptive begins with, 1 to
	// 1000000, by default 16.
	// +optional
	// +kubebuilder:default=16
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=1000000
	Size int64 `json:"size,omitempty"`
}

// BatchType says how the size of a batch is found.
// +kubebuilder:validation:Enum=Adaptive;Fixed
type BatchType string

// The types of a batch.
const (
	AdaptiveBatch BatchType = "Adaptive"
	FixedBatch    BatchType = "Fixed"
)

// OnBudgetOutage says what a cluster does while the coordinator does not
// answer.
type OnBudgetOutage struct {
	// action decides requests then. None of them exceeds the limit.
	// FailClosed, the default, hands on what the cluster has in hand of the open
	// window, then refuses.
	// RegionalOnly does the same, but asks ahead for what it expects to need in
	// the rest of the window, so that an outage within a window is hardly felt.
	// Nominal goes on with what the member keeps of its nominal, nominal −
	// lendingLimit, in every window. With a hub it has to be the action there,
	// too.
	// +optional
	// +kubebuilder:default=FailClosed
	Action BudgetOutageAction `json:"action,omitempty"`
}

// BudgetOutageAction is what a cluster does while the coordinator does not
// answer.
// +kubebuilder:validation:Enum=FailClosed;RegionalOnly;Nominal
type BudgetOutageAction string

// The outage actions of a budget.
const (
	BudgetFailClosedAction   BudgetOutageAction = "FailClosed"
	BudgetRegionalOnlyAction BudgetOutageAction = "RegionalOnly"
	BudgetNominalAction      BudgetOutageAction = "Nominal"
)
