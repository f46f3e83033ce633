package redis

import (
	"fmt"
	"slices"
	"strconv"

	"github.com/weir-dev/weir/pkg/store"
)

// A server is what one says of itself.
type server struct {
	cluster  bool              // it is a node of one
	watched  bool              // by Sentinels
	overHTTP bool              // it is reached through a service or a proxy
	info     map[string]string // sections memory, replication and persistence of INFO, and cluster of a service
	config   map[string]string // empty when it does not show its configuration
}

// guarantee grades a server for counters that may be lost with its process.
func (s server) guarantee() store.Guarantee {
	policy, shown := s.info["maxmemory_policy"]
	if !shown {
		return store.Guarantee{Grade: store.BestEffort, Reason: "INFO does not show maxmemory_policy, so counters may be evicted: let it be shown, and set it to noeviction"}
	}
	if policy != "noeviction" {
		return store.Guarantee{
			Grade:  store.BestEffort,
			Reason: fmt.Sprintf("maxmemory-policy is %s, so counters may be evicted; set it to noeviction", among(evictions, policy)),
		}
	}
	if s.overHTTP {
		return s.served()
	}
	if s.replicated() {
		replicas, err := strconv.ParseUint(s.info["connected_slaves"], 10, 16)
		if err != nil {
			return store.Guarantee{Grade: store.BestEffort, Reason: "INFO does not say how many replicas are connected: use Redis 7 or newer"}
		}
		return store.Guarantee{
			Grade: store.HardExceptSplitBrain,
			Reason: fmt.Sprintf("%d replicas: after a failover the old primary may grant until it notices; "+
				"min-replicas-to-write and min-replicas-max-lag bound how long", replicas),
		}
	}
	if s.watched {
		return store.Guarantee{
			Grade:  store.HardExceptSplitBrain,
			Reason: "no replica is connected, but Sentinels may still promote one that was: what it did not copy may be granted again",
		}
	}
	return store.Guarantee{Grade: store.Hard}
}

// served grades a service that is reached over HTTP. Whether it has replicas is its own
// affair, and those that are known copy after they have answered.
func (s server) served() store.Guarantee {
	if _, named := s.info["master_replid"]; named {
		return store.Guarantee{
			Grade:  store.HardExceptSplitBrain,
			Reason: "over HTTP replicas may stand in without having copied the last grants: after a failover the old primary may grant until it notices",
		}
	}
	if _, named := s.info["primary_member"]; named {
		return store.Guarantee{
			Grade: store.BestEffort,
			Reason: "INFO has no master_replid: a new leader is noticed by primary_member, but not one that has led before, " +
				"and what it did not copy may be granted again",
		}
	}
	return store.Guarantee{
		Grade:  store.BestEffort,
		Reason: "INFO does not say which instance serves (master_replid), so a failover is not noticed, and what the new leader did not copy is granted again",
	}
}

// durable grades a server for counters that should survive its process. Counts that it
// may forget do not lower the grade, for they are not granted again; see
// limiter.Retention.
func (s server) durable() store.Guarantee {
	g, why := s.guarantee(), s.forgetful()
	switch {
	case why == "":
	case g.Reason == "":
		g.Reason = why
	default:
		g.Reason += "; " + why
	}
	return g
}

// forgetful says why the server may lose what it acknowledged, and the cure; "" when it
// loses nothing.
func (s server) forgetful() string {
	const then = ", and windows that had begun wait for their end, or resume with at most one more limit (onMemoryLoss)"
	switch fsync := s.config["appendfsync"]; {
	case s.overHTTP:
		return "over HTTP a replica may stand in that lacks the last grants" + then + "; a single server without replicas, reached directly, can keep them"
	case s.info["aof_enabled"] != "1":
		return "appendonly is no, so a restart forgets counters" + then + "; set appendonly yes and appendfsync always"
	case s.cluster:
		return "a part of a cluster that moves or fails over may lose its last grants" + then + "; a single server can keep them"
	case s.replicated():
		return "a replica that is promoted may lack the last grants" + then + "; a server without replicas can keep them"
	case fsync == "":
		return "appendfsync is not shown, so the last grants may be lost with a crash" + then + "; allow the user +config|get"
	case fsync != "always":
		return fmt.Sprintf("appendfsync is %s, so a crash may lose the last grants%s; set it to always", among([]string{"everysec", "no"}, fsync), then)
	case s.config["no-appendfsync-on-rewrite"] != "no":
		return "no-appendfsync-on-rewrite is yes, so a crash may lose the last grants" + then + "; set it to no"
	}
	return ""
}

// evictions are the values of maxmemory-policy by which Redis evicts keys.
var evictions = []string{
	"allkeys-lru", "allkeys-lfu", "allkeys-random", "allkeys-lrm",
	"volatile-lru", "volatile-lfu", "volatile-random", "volatile-lrm", "volatile-ttl",
	"optimistic-volatile", // of a service
}

// among returns a value that a server sent if it is one of those: no other bytes of a server
// get into a reason, which everybody may read.
func among(of []string, value string) string {
	if slices.Contains(of, value) {
		return value
	}
	return "another value"
}

// replicated reports whether a replica has a copy of what the server holds, or is
// about to get one.
func (s server) replicated() bool { return s.info["connected_slaves"] != "0" }
