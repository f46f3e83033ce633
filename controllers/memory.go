package controllers

import (
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// memory is what a reconciler remembers of each object: nothing that a new
// leader would miss, only what spares repeated work. The zero value is empty.
type memory struct {
	mu     sync.Mutex
	byName map[types.NamespacedName]remembered // guarded by mu
}

type remembered struct {
	published string    // fingerprint of what the fleet was last refreshed for
	written   time.Time // when the status was last written
	settling  bool      // the figures written are those of a moment of change
}

// publish reports whether the fleet was not yet refreshed for the fingerprint,
// and remembers that it now is.
func (m *memory) publish(name types.NamespacedName, fingerprint string) bool {
	fresh := false
	m.update(name, func(r *remembered) {
		fresh = r.published != fingerprint
		r.published = fingerprint
	})
	return fresh
}

// written returns when the object's status was last written, the zero time when
// it never was.
func (m *memory) written(name types.NamespacedName) time.Time {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.byName[name].written
}

func (m *memory) wrote(name types.NamespacedName, now time.Time) {
	m.update(name, func(r *remembered) { r.written = now })
}

// settling reports whether the object's figures are to be written once more soon.
func (m *memory) settling(name types.NamespacedName) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.byName[name].settling
}

func (m *memory) settle(name types.NamespacedName, settling bool) {
	m.update(name, func(r *remembered) { r.settling = settling })
}

func (m *memory) drop(name types.NamespacedName) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.byName, name)
}

func (m *memory) update(name types.NamespacedName, change func(*remembered)) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.byName == nil {
		m.byName = make(map[types.NamespacedName]remembered)
	}
	r := m.byName[name]
	change(&r)
	m.byName[name] = r
}
