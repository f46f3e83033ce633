package controllers

import (
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// memory is what a reconciler remembers of each policy: nothing that a new
// leader would miss, only what spares repeated work. The zero value is empty.
type memory struct {
	mu       sync.Mutex
	policies map[types.NamespacedName]remembered // guarded by mu
}

type remembered struct {
	published string    // fingerprint of what the fleet was last refreshed for
	written   time.Time // when the status was last written
}

// publish reports whether the fleet was not yet refreshed for the fingerprint,
// and remembers that it now is.
func (m *memory) publish(policy types.NamespacedName, fingerprint string) bool {
	fresh := false
	m.update(policy, func(r *remembered) {
		fresh = r.published != fingerprint
		r.published = fingerprint
	})
	return fresh
}

// written returns when the policy's status was last written, the zero time when
// it never was.
func (m *memory) written(policy types.NamespacedName) time.Time {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.policies[policy].written
}

func (m *memory) wrote(policy types.NamespacedName, now time.Time) {
	m.update(policy, func(r *remembered) { r.written = now })
}

func (m *memory) drop(policy types.NamespacedName) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.policies, policy)
}

func (m *memory) update(policy types.NamespacedName, change func(*remembered)) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.policies == nil {
		m.policies = make(map[types.NamespacedName]remembered)
	}
	r := m.policies[policy]
	change(&r)
	m.policies[policy] = r
}
