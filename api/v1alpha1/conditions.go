package v1alpha1

// Condition types. Each carries the generation it speaks of, and all but
// Stalled, Saturated, Learning and KeysFull are good when True. While Accepted
// is False the others are absent, but for Ready and Stalled.
const (
	// ReadyCondition sums the object up for tools that know no other: it is
	// accepted, every selected pod enforces this generation, and no request passes
	// that nothing limits. A FederatedBudget is accepted and connected.
	ReadyCondition = "Ready"

	// StalledCondition: the object waits for its author, and not for Weir. It is
	// there while it is True, and has the reason of Accepted.
	StalledCondition = "Stalled"

	// AcceptedCondition: the object is valid and is being programmed.
	AcceptedCondition = "Accepted"

	// ProgrammedCondition: sidecars acknowledged this generation. Sending it
	// is not enough.
	ProgrammedCondition = "Programmed"

	// WithinBoundCondition: nothing was admitted beyond the stated bound.
	WithinBoundCondition = "WithinBound"

	// StoreReachableCondition, of a RateLimitPolicy: every reporting sidecar
	// reaches the store.
	StoreReachableCondition = "StoreReachable"

	// CoordinatorReachableCondition, of a ConcurrencyPool: every reporting sidecar
	// reaches the coordinator.
	CoordinatorReachableCondition = "CoordinatorReachable"

	// SaturatedCondition, of a ConcurrencyPool: requests find no slot.
	SaturatedCondition = "Saturated"

	// ConnectedCondition, of a FederatedBudget: this cluster reaches the
	// coordinator, which takes it for a member.
	ConnectedCondition = "Connected"

	// LearningCondition, of a FederatedBudget: the coordinator cannot know what
	// was granted of the open window before, and grants nothing of it. Of a
	// RateLimitPolicy: the same of the store and of a limit.
	LearningCondition = "Learning"

	// JWTKeysCondition, of a RateLimitPolicy with jwtProviders: the keys of all of
	// them are known.
	JWTKeysCondition = "JWTKeysAvailable"

	// KeysFullCondition, of a RateLimitPolicy: the controller's own store, or a
	// sidecar, has no room for more values of a limit's key. Of a FederatedBudget:
	// the hub has none for more values of its key. It is there while it is True.
	KeysFullCondition = "KeysFull"
)

// PendingReason says that the controller has not looked at this generation
// yet.
// The API server writes it into new objects.
const PendingReason = "Pending"

// ReadyReason of ReadyCondition: True. Otherwise it has the reason of the
// condition that it depends on.
const ReadyReason = "Ready"

// Reasons of AcceptedCondition.
const (
	AcceptedReason = "Accepted" // True
	InvalidReason  = "Invalid"  // False: the message names the field and the cure
	// ConflictedReason: False: of a ConcurrencyPool, an older pool selects the
	// same pods and applies to them; of a FederatedBudget, an older one has the
	// same id. The message names it.
	ConflictedReason = "Conflicted"
	// IDNotPermittedReason, of a FederatedBudget: False: its namespace may not
	// have the id; the message says which ids it may have, and how an
	// administrator allows others.
	IDNotPermittedReason = "IDNotPermitted"
	// NotAMemberReason, of a FederatedBudget: False: none of its members is called
	// like this cluster; the message says how that is called.
	NotAMemberReason = "NotAMember"
	// BudgetNotFoundReason, of a RateLimitPolicy: False: the FederatedBudget that
	// a budgetRef names does not exist, or does not count; pods go on with what
	// they have.
	BudgetNotFoundReason = "BudgetNotFound"
)

// Reasons of ProgrammedCondition.
const (
	ProgrammedReason = "Programmed" // True: every selected pod enforces this generation
	// PartiallyProgrammedReason: True: every sidecar enforces it, and pods without
	// one run beside them; False: there are sidecars that limit nothing. The
	// message names the pods.
	PartiallyProgrammedReason = "PartiallyProgrammed"
	ReconcilingReason         = "Reconciling" // False: sidecars still run something older
	NoEnforcersReason         = "NoEnforcers" // False: no selected pod has a sidecar
)

// Reasons of WithinBoundCondition.
const (
	MeasuredReason       = "Measured"       // True
	BoundExceededReason  = "BoundExceeded"  // False: the message says when and by how much
	NoTrafficReason      = "NoTraffic"      // Unknown: there was no request
	ReportsMissingReason = "ReportsMissing" // Unknown: a sidecar did not report what it let through
	PodsNotLimitedReason = "PodsNotLimited" // Unknown: selected pods let requests pass that nothing limits or counts, or go by what a pool selected before; the message names them
	RowsRejectedReason   = "RowsRejected"   // Unknown: the controller cannot read what a sidecar sent; the message names the field
	FailOpenReason       = "FailOpen"       // Unknown: the failure action Allow admitted requests uncounted
	MemoryLostReason     = "MemoryLost"     // Unknown: with onMemoryLoss Resume more was admitted than is bounded, and the store may have lost its memory, nobody knows how often
	LocalOnlyReason      = "LocalOnly"      // Unknown: pods that are cut off from the coordinator admit by themselves
	StartingReason       = "Starting"       // Unknown: nothing of this generation was measured
)

// Reasons of StoreReachableCondition and CoordinatorReachableCondition.
const (
	ReachableReason   = "Reachable"   // True
	UnreachableReason = "Unreachable" // False: the message carries the error
	// QuarantinedReason, of a coordinator: True: it has just lost its memory, and
	// grants no more than is in use until every older share has expired.
	QuarantinedReason = "Quarantined"
)

// Reasons of SaturatedCondition. NoTrafficReason and StartingReason make it
// Unknown, as does UnreachableReason, when no pod has a share.
const (
	AtLimitReason     = "AtLimit"     // True: the limit that latency allows is used up
	AtMaxReason       = "AtMax"       // True: the limit is used up and may not rise
	AtMinReason       = "AtMin"       // True: the limit is used up and may not fall, though latency says that it should
	HasHeadroomReason = "HasHeadroom" // False
)

// Reasons of ConnectedCondition. StartingReason makes it Unknown.
const (
	ConnectedReason          = "Connected"          // True
	PartitionedReason        = "Partitioned"        // False: the coordinator does not answer; the message carries the error
	NoRootReason             = "NoRoot"             // False: it answers, but no leading controller of the hub serves
	UnauthorizedReason       = "Unauthorized"       // False: it refuses the credentials of this cluster
	CertificateExpiredReason = "CertificateExpired" // False
	UnknownMemberReason      = "UnknownMember"      // False: the budget does not list this cluster there
	UnknownBudgetReason      = "UnknownBudget"      // False: it has no budget with this id
	MismatchedReason         = "Mismatched"         // False: it keeps the budget in windows of another length or with other additional rates, or only one of the two objects has a key
)

// Reasons of LearningCondition. StartingReason makes it Unknown.
const (
	AmnesiaReason = "Amnesia" // True: the memory of the coordinator, or the store, is younger than the open window
	BehindReason  = "Behind"  // True: its clock went back, and it waits until that has caught up
	LearnedReason = "Learned" // False
)

// Reasons of JWTKeysCondition. StartingReason makes it Unknown: they are being
// read.
const (
	KeysAvailableReason   = "Available"   // True
	KeysStaleReason       = "Stale"       // False: they cannot be read again, and those that were read last are used
	KeysUnavailableReason = "Unavailable" // False: a provider has none, so it verifies no token
)

// Reasons of KeysFullCondition. Where it is True for both, NoRoomReason is
// shown.
const (
	NoRoomReason       = "NoRoom"       // True: in the controller's store, or in the hub, values that are new share counters
	NoRoomInPodsReason = "NoRoomInPods" // True: in sidecars, values that are new share counters
)
