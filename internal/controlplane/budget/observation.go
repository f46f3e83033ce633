package budget

import (
	"time"

	"github.com/weir-dev/weir/internal/controlplane/audit/budgetaudit"
	"github.com/weir-dev/weir/pkg/federation/ledger"
	"github.com/weir-dev/weir/pkg/limiter"
)

// An Observation is what this cluster knows of one budget at one instant.
type Observation struct {
	// Generation of the FederatedBudget that the region works by. 0: this process runs no
	// region of it, because it does not lead, has not read the object yet or must not
	// take part; then nothing else is set.
	Generation int64
	Link       Link
	Root       Root
	// Certificate is the one with which this cluster authenticates to a hub.
	Certificate Certificate

	// Learning is the time until which the ledger grants nothing although it answers,
	// because its memory began within the open window or, when Behind, because its clock
	// went back. Zero when it grants.
	Learning time.Time
	Behind   bool
	// Slice is what this member may use of each window without asking.
	Slice int64
	// EscrowError says why the place that keeps what the region was granted does not
	// answer, so that this process leases for itself; empty when it does.
	EscrowError string

	// Ledger is the budget as its coordinator showed it last; nil before it did. Read is
	// when that was, on the coordinator's clock.
	Ledger *ledger.State
	Read   limiter.Instant

	Figures budgetaudit.Figures
	Keys    Keys

	// Further are the same of the further rates of the FederatedBudget, in their order. They have none
	// themselves.
	Further []Observation
}

// Keys are what is known of the values of a budget with a key.
type Keys struct {
	InCluster int64 // values that this process remembers
	// InUse is how many counters the coordinator had for values in the open window, or in the
	// one before when those were more; 0 while nothing is known. Full says that some values
	// shared one, for want of room.
	InUse int64
	Full  bool
}

// A Link is how this cluster stands with the coordinator of a budget.
type Link struct {
	Problem Problem
	// Detail is the error in words, as it came; empty when there is no problem.
	Detail string
	// Since is when the problem began, or when the last one ended; zero for from the
	// start.
	Since time.Time
}

// A Problem says why the coordinator grants this cluster nothing. The zero Problem means
// that it answers.
type Problem string

// The problems.
const (
	// Starting: it was not asked yet, or did not answer the first command yet.
	Starting Problem = "Starting"
	// Partitioned: it cannot be reached, or does not answer in time.
	Partitioned Problem = "Partitioned"
	// NoRoot: it was reached, but keeps no budget now: nobody leads there, the durable
	// place that it sets blocks aside in does not answer, or the two do not understand
	// each other.
	NoRoot Problem = "NoRoot"
	// Unauthorized: it refused the certificate or the token, this cluster does not trust
	// its certificate, or the Secret with the credentials cannot be had.
	Unauthorized Problem = "Unauthorized"
	// CertificateExpired: the certificate of one of the two sides has.
	CertificateExpired Problem = "CertificateExpired"
	// UnknownBudget: it keeps no budget of that id.
	UnknownBudget Problem = "UnknownBudget"
	// UnknownMember: it keeps the budget, and the budget lists no such member.
	UnknownMember Problem = "UnknownMember"
	// Mismatched: it keeps the budget in windows of another length or with other additional rates,
	// or only one of it and the member's object has a key.
	Mismatched Problem = "Mismatched"
)

// A Certificate is renewed by itself when two thirds of its life are over.
type Certificate struct {
	Ends time.Time // zero: there is none, or it was not read yet
	// Problem says why it is not renewed although it is time, and the cure; empty when it
	// is, or there is time.
	Problem string
}

// A Root is what keeps the ledger of a budget.
type Root struct {
	Member string // the cluster, when it is one and said so
	Term   int64  // of its memory, 0 while unknown
	Since  time.Time
}

// SilentAfter is for how long a coordinator need not hear of a member, three windows if
// those are longer, before the member counts as silent. A member that is there makes
// itself heard more often, also when it wants nothing.
const SilentAfter = 15 * limiter.Second
