package v1alpha1

// Condition types of a RateLimitPolicy. All are good when True, and each carries
// the generation it speaks of. While Accepted is False the others are absent.
const (
	// AcceptedCondition: the policy is valid and is being programmed.
	AcceptedCondition = "Accepted"

	// ProgrammedCondition: sidecars acknowledged this generation. It never speaks
	// of what was merely sent.
	ProgrammedCondition = "Programmed"

	// WithinBoundCondition: no window admitted more than the stated bound.
	WithinBoundCondition = "WithinBound"

	// StoreReachableCondition: every reporting sidecar reaches the store.
	StoreReachableCondition = "StoreReachable"
)

// PendingReason says that the controller has not looked at this generation yet.
// The API server writes it into new objects.
const PendingReason = "Pending"

// Reasons of AcceptedCondition.
const (
	AcceptedReason = "Accepted" // True
	InvalidReason  = "Invalid"  // False: the message names the field and the cure
)

// Reasons of ProgrammedCondition.
const (
	ProgrammedReason          = "Programmed"          // True: every selected pod enforces this generation
	PartiallyProgrammedReason = "PartiallyProgrammed" // True: some do; the message names those that do not
	ReconcilingReason         = "Reconciling"         // False: sidecars still run something older
	NoEnforcersReason         = "NoEnforcers"         // False: no selected pod has a sidecar
)

// Reasons of WithinBoundCondition.
const (
	MeasuredReason       = "Measured"       // True
	BoundExceededReason  = "BoundExceeded"  // False: the message names the limit, the window and by how much
	NoTrafficReason      = "NoTraffic"      // Unknown: no window had a request
	ReportsMissingReason = "ReportsMissing" // Unknown: a sidecar did not report what it let through
	FailOpenReason       = "FailOpen"       // Unknown: the failure action Allow admitted requests uncounted
	StartingReason       = "Starting"       // Unknown: no window of this generation was measured
)

// Reasons of StoreReachableCondition.
const (
	ReachableReason   = "Reachable"   // True
	UnreachableReason = "Unreachable" // False: the message carries the store's error
)
