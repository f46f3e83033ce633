package region

import (
	"cmp"
	"errors"

	"github.com/weir-dev/weir/internal/controlplane/budget"
	"github.com/weir-dev/weir/internal/controlplane/hub"
	"github.com/weir-dev/weir/pkg/federation"
	"github.com/weir-dev/weir/pkg/federation/ledger"
)

var refusals = map[hub.Reason]budget.Problem{
	hub.Unauthorized:       budget.Unauthorized,
	hub.Untrusted:          budget.Unauthorized,
	hub.CertificateExpired: budget.CertificateExpired,
	hub.UnknownBudget:      budget.UnknownBudget,
	hub.UnknownMember:      budget.UnknownMember,
	hub.Mismatched:         budget.Mismatched,
	hub.Invalid:            budget.NoRoot,
}

// problemOf returns what an error of a coordinator says; own says that it is this
// process.
func problemOf(err error, own bool) budget.Problem {
	if r, ok := errors.AsType[*hub.RefusedError](err); ok {
		return refusals[r.Reason]
	}
	if _, ok := errors.AsType[*CredentialsError](err); ok {
		return budget.Unauthorized
	}
	if own {
		return budget.NoRoot
	}
	return budget.Partitioned
}

// answers are those that say why nothing can be granted until somebody changes
// something.
var answers = map[ledger.Reason]struct {
	budget.Problem
	detail string
}{
	ledger.Unknown:    {budget.UnknownMember, "the coordinator's budget does not list this member"},
	ledger.Mismatched: {budget.Mismatched, "the coordinator keeps the budget in windows of another length"},
}

// linkOf returns the state of the link to the coordinator, without since when: by the last
// look and by the results of the engine's commands.
func linkOf(s federation.Stats, seen sight, own bool) budget.Link {
	failure := cmp.Or(seen.err, seen.keyless)
	if failure == nil && !s.Connected {
		failure = s.Err
	}
	if failure != nil {
		return budget.Link{Problem: problemOf(failure, own), Detail: failure.Error()}
	}
	if a, ok := answers[s.Grant.Reason]; ok {
		return budget.Link{Problem: a.Problem, Detail: a.detail}
	}
	if seen.state == nil {
		return budget.Link{Problem: budget.Starting}
	}
	return budget.Link{}
}
