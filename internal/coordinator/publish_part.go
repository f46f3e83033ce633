package coordinator

import (
	"slices"

	"k8s.io/apimachinery/pkg/types"

	"github.com/weir-dev/weir/pkg/policy"
)

// losesNothing reports whether part, which is not all that the holder has to enforce,
// has a version of all that the holder enforces. For a holder that was sent nothing in this
// term, only the version of what it enforces is known. Unless that is one that a pod begins
// with, it may be more than the part.
func (s *session) losesNothing(part *config) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.sent {
		return part.covers(s.serves)
	}
	return s.offered == "" || s.offered == part.version ||
		s.offered == versionOf(withoutSecrets(part.snapshot)) ||
		s.offered == versionOf(policy.Snapshot{Cluster: part.snapshot.Cluster})
}

// lacksSome reports whether the holder is served by a part: it may enforce more.
func (s *session) lacksSome() bool {
	by, sent := s.served()
	return by != nil && !sent
}

// covers reports whether all policies of other are in c, a pool where it has one, and no
// limit is pending that is in force there.
func (c *config) covers(other *config) bool {
	for name, p := range other.policies {
		if !c.has(name) {
			return false
		}
		for _, l := range p.Limits {
			if !l.Pending && c.isPending(name, l.Name) {
				return false
			}
		}
	}
	return c.pool != nil || other.pool == nil
}

// isPending reports whether a limit of a policy in c is pending.
func (c *config) isPending(name types.NamespacedName, limit string) bool {
	return slices.ContainsFunc(c.policies[name].Limits, func(l policy.Limit) bool { return l.Name == limit && l.Pending })
}

// withoutSecrets returns s as a pod is created with: credentials come by the stream, and
// whether and when a limit was born.
func withoutSecrets(s policy.Snapshot) policy.Snapshot {
	s.Policies = slices.Clone(s.Policies)
	for i := range s.Policies {
		p := &s.Policies[i]
		p.Store.SecretVersion = ""
		p.Limits = slices.Clone(p.Limits)
		for j := range p.Limits {
			p.Limits[j].Retention.Born, p.Limits[j].Pending = nil, false
		}
	}
	if s.Pool != nil {
		p := *s.Pool
		p.Coordinator.SecretVersion = ""
		s.Pool = &p
	}
	return s
}

// versionOf returns the version of a snapshot, "" of one that cannot be encoded.
func versionOf(s policy.Snapshot) string {
	_, version, _ := policy.Encode(s)
	return version
}
