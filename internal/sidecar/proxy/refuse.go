package proxy

import (
	"fmt"
	"net/http"
	"time"

	"github.com/weir-dev/weir/internal/sidecar/enforce"
	"github.com/weir-dev/weir/internal/sidecar/problem"
	"github.com/weir-dev/weir/internal/sidecar/quota"
	"github.com/weir-dev/weir/internal/sidecar/recent"
	"github.com/weir-dev/weir/pkg/policy"
)

// answer answers r in place of the app, and keeps why. value is that of the key that refused it, empty
// for none.
func (p *Proxy) answer(w http.ResponseWriter, r *http.Request, why *problem.Problem, value string) {
	if p.cfg.Recent != nil {
		refusal := recent.Of(time.Now(), r, why, w.Header(), value)
		p.cfg.Recent.Add(&refusal)
	}
	why.Write(w, r)
}

// refuse answers a request that a limit did not admit, as its policy says.
func (p *Proxy) refuse(w http.ResponseWriter, r *http.Request, why *enforce.Refusal) {
	for _, f := range quota.Fields(why.State()) {
		w.Header()[f.Name] = []string{f.Value} // as the draft spells it
	}
	says := problemOf(why)
	says.Body = why.Policy.Response.Body
	says.Source = map[string]string{"namespace": why.Policy.Namespace, "policy": why.Policy.Name, "limit": why.Limit.Name}
	p.answer(w, r, &says, why.Value)
}

func problemOf(why *enforce.Refusal) problem.Problem {
	switch why.Cause {
	case enforce.QuotaExceeded:
		p := problem.Problem{
			Type:             problem.QuotaExceeded,
			Title:            "Request cannot be satisfied as assigned quota has been exceeded",
			Status:           why.Policy.Response.StatusCode,
			Detail:           quotaDetail(why),
			ViolatedPolicies: []string{why.Limit.Name},
			Reason:           "QUOTA_EXCEEDED",
			Code:             problem.GRPCResourceExhausted,
		}
		if why.Policy.Response.GRPCUnavailable {
			p.Code = problem.GRPCUnavailable
		}
		return p
	case enforce.StoreUnavailable:
		return unavailable(why, "cannot be reached, and the policy refuses requests meanwhile", "STORE_UNAVAILABLE")
	case enforce.StoreDraining:
		return unavailable(why, "are moving to another store, and requests are refused until it serves", "STORE_DRAINING")
	case enforce.CostTooLarge:
		p := problem.New(http.StatusBadRequest, fmt.Sprintf("the request costs %d, and limit %q of policy %q never admits more than %d: send a smaller %s",
			why.Cost, why.Limit.Name, why.Policy.Name, why.Most, why.Limit.Cost.RequestHeader))
		p.Reason = "COST_TOO_LARGE"
		return p
	default: // enforce.KeyMissing
		p := problem.New(http.StatusBadRequest, fmt.Sprintf("limit %q of policy %q counts by %s: send it once",
			why.Limit.Name, why.Policy.Name, nameOf(why.Missing)))
		p.Reason = "KEY_MISSING"
		return p
	}
}

// RefuseForMemory answers a request that the sidecar has no memory for.
func RefuseForMemory(w http.ResponseWriter, r *http.Request) { forMemory(w, r).Write(w, r) }

// refuseForMemory does that for a proxy.
func (p *Proxy) refuseForMemory(w http.ResponseWriter, r *http.Request) {
	why := forMemory(w, r)
	p.answer(w, r, &why, "")
}

// forMemory sets the fields of that answer, and returns the rest.
func forMemory(w http.ResponseWriter, r *http.Request) problem.Problem {
	problem.RetryAfter(w.Header(), time.Second)
	p := reducedCapacity(http.StatusServiceUnavailable, "", "the sidecar has no memory left for the request")
	p.Reason, p.ViolatedPolicies = "NO_MEMORY", nil
	if r.ProtoMajor == 1 { // of HTTP/2 it would become GOAWAY, to all clients that share the connection
		w.Header().Set("Connection", "close")
	}
	return p
}

// unavailable says that the limit's counters do not serve for some time.
func unavailable(why *enforce.Refusal, state, reason string) problem.Problem {
	detail := fmt.Sprintf("the counters of limit %q of policy %q %s", why.Limit.Name, why.Policy.Name, state)
	p := reducedCapacity(http.StatusServiceUnavailable, why.Limit.Name, detail)
	p.Reason = reason
	return p
}

// reducedCapacity is the problem of a request that is refused now, though the same one
// may be admitted later.
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
	case policy.QueryParamKey:
		return "query parameter " + p.Name
	case policy.JWTClaimKey:
		return "claim " + p.Name + " of the token in header " + p.Header
	case policy.PeerIdentityKey:
		return "the identity of the caller, which a trusted proxy verifies"
	case policy.DescriptorKey:
		return "descriptor " + p.Name
	case policy.ExpressionKey:
		return "an expression, which this request has no value for"
	case policy.HostKey:
		return "host"
	case policy.PathKey:
		return "path"
	default:
		return "method"
	}
}
