package proxy

import (
	"fmt"
	"net/http"
	"time"

	"github.com/weir-dev/weir/internal/sidecar/enforce"
	"github.com/weir-dev/weir/internal/sidecar/problem"
	"github.com/weir-dev/weir/pkg/policy"
)

// refuse answers a request that a limit did not admit.
func refuse(w http.ResponseWriter, r *http.Request, why *enforce.Refusal) {
	switch why.Cause {
	case enforce.QuotaExceeded:
		quotaFields(w.Header(), why)
		problem.RetryAfter(w.Header(), why.Decision.RetryAfter)
		problem.Problem{
			Type:             problem.QuotaExceeded,
			Title:            "Request cannot be satisfied as assigned quota has been exceeded",
			Status:           http.StatusTooManyRequests,
			Detail:           quotaDetail(why),
			ViolatedPolicies: []string{why.Limit.Name},
		}.Write(w, r)
	case enforce.StoreUnavailable:
		unavailable(w, r, why, "cannot be reached, and the policy refuses requests meanwhile")
	case enforce.StoreDraining:
		unavailable(w, r, why, "are moving to another store, and requests are refused until it serves")
	case enforce.CostTooLarge:
		problem.New(http.StatusBadRequest, fmt.Sprintf("the request costs %d, and limit %q of policy %q never admits more than %d: send a smaller %s",
			why.Cost, why.Limit.Name, why.Policy.Name, why.Most, why.Limit.Cost.RequestHeader)).Write(w, r)
	case enforce.KeyMissing:
		problem.New(http.StatusBadRequest, fmt.Sprintf("limit %q of policy %q counts by %s: send it",
			why.Limit.Name, why.Policy.Name, nameOf(why.Missing))).Write(w, r)
	}
}

// unavailable says that the limit's counters do not serve for some time.
func unavailable(w http.ResponseWriter, r *http.Request, why *enforce.Refusal, state string) {
	problem.RetryAfter(w.Header(), max(why.Decision.RetryAfter, time.Second))
	detail := fmt.Sprintf("the counters of limit %q of policy %q %s", why.Limit.Name, why.Policy.Name, state)
	reducedCapacity(http.StatusServiceUnavailable, why.Limit.Name, detail).Write(w, r)
}

// reducedCapacity is the problem of a request that somebody refuses who may admit the
// same one later.
func reducedCapacity(status int, who, detail string) problem.Problem {
	return problem.Problem{
		Type:             problem.TemporaryReducedCapacity,
		Title:            "Request cannot be satisfied due to temporary server capacity constraints",
		Status:           status,
		Detail:           detail,
		ViolatedPolicies: []string{who},
	}
}

func nameOf(p policy.KeyPart) string {
	switch p.Type {
	case policy.HeaderKey:
		return "header " + p.Header
	case policy.ClientIPKey:
		return "client address"
	case policy.PathKey:
		return "path"
	default:
		return "method"
	}
}
