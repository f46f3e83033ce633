package proxy

import (
	"fmt"
	"net/http"
	"strconv"
	"time"

	"github.com/weir-dev/weir/internal/sidecar/pools"
	"github.com/weir-dev/weir/internal/sidecar/problem"
	"github.com/weir-dev/weir/pkg/concurrency"
	"github.com/weir-dev/weir/pkg/policy"
)

// refuseEntry answers a request that the pool gives no slot.
func (p *Proxy) refuseEntry(w http.ResponseWriter, r *http.Request, why *pools.Refusal) {
	if why.Verdict == concurrency.Canceled {
		breakOff()
	}
	if why.Missing != nil {
		p.refuseWithoutKey(w, r, why)
		return
	}
	slotFields(w.Header(), why)
	problem.RetryAfter(w.Header(), max(why.RetryAfter, time.Second))
	name, perKey := policy.PoolName(why.Pool.Name)
	who := fmt.Sprintf("pool %q", name)
	if perKey {
		who = fmt.Sprintf("the limit per key of pool %q", name)
	}
	says := reducedCapacity(why.Pool.StatusCode, name, who+" "+slotDetail(why))
	says.Reason, says.Source = "NO_SLOT", map[string]string{"namespace": why.Pool.Namespace, "pool": name}
	p.answer(w, r, &says, "")
}

// refuseWithoutKey answers a request that lacks a part of the pool's key.
func (p *Proxy) refuseWithoutKey(w http.ResponseWriter, r *http.Request, why *pools.Refusal) {
	name, _ := policy.PoolName(why.Pool.Name)
	says := problem.New(http.StatusBadRequest, fmt.Sprintf("pool %q counts by %s: send it once", name, nameOf(*why.Missing)))
	says.Reason, says.Source = "KEY_MISSING", map[string]string{"namespace": why.Pool.Namespace, "pool": name}
	p.answer(w, r, &says, "")
}

// slotFields sets the fields of the IETF draft "RateLimit header fields for HTTP", whose
// quota unit concurrent-requests is for limits like this one. Before the fleet's limit
// is known it sets none.
func slotFields(h http.Header, why *pools.Refusal) {
	if why.Limit <= 0 {
		return
	}
	object, _ := policy.PoolName(why.Pool.Name)
	name := strconv.Quote(object)
	h["RateLimit-Policy"] = []string{name + ";q=" + strconv.FormatInt(why.Limit, 10) + `;qu="concurrent-requests"`} // as the draft spells it
	h["RateLimit"] = []string{name + ";r=0"}
}

func slotDetail(why *pools.Refusal) string {
	switch why.Verdict {
	case concurrency.Overflow:
		return fullDetail(why) + ", and its queue is full, too"
	case concurrency.Expired:
		return fullDetail(why) + ", and no request ended while this one waited"
	case concurrency.Unassigned:
		return unassignedDetail(why)
	case concurrency.Fenced:
		return "cannot be divided: its coordinator does not answer, and the part of its limit that this pod had has expired"
	case concurrency.Closed:
		return "takes no more requests here: the pod is stopping"
	default:
		return fullDetail(why)
	}
}

// fullDetail says what the slots of this pod are in use for.
func fullDetail(why *pools.Refusal) string {
	limit := fmt.Sprintf("is full: its limit is %d, ", why.Limit)
	if _, perKey := policy.PoolName(why.Pool.Name); perKey {
		limit = fmt.Sprintf("is reached by the value that the request has: it is %d, ", why.Limit)
	}
	switch {
	case why.Ceiling <= 0 && why.Limit < why.Holders:
		return limit + fmt.Sprintf("fewer slots than the %d pods that share it, and this pod has none", why.Holders)
	case why.Ceiling <= 0:
		return limit + "and this pod has no part of it at the moment"
	case why.Kept > 0:
		return limit + fmt.Sprintf("and none of the %d slots of this pod is free: %d in flight, %d kept for partitions", why.Ceiling, why.InFlight, why.Kept)
	default:
		return limit + fmt.Sprintf("and all that this pod may have in flight, %d, is", why.Ceiling)
	}
}

// unassignedDetail says what the pod waits for. The coordinator's error is for the log
// and the status: it may name servers, which are not for clients.
func unassignedDetail(why *pools.Refusal) string {
	if why.CoordinatorError != nil {
		return "cannot be divided: its coordinator does not answer, and this pod never had a part of its limit"
	}
	return "has given this pod no part of its limit yet"
}
