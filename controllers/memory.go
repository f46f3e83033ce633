package controllers

import (
	"context"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/log"
)

// memory is what a reconciler remembers of each object: nothing that a new
// leader would miss, only what spares repeated work. The zero value is empty.
type memory struct {
	mu     sync.Mutex
	byName map[types.NamespacedName]remembered // guarded by mu
	warn   sync.Once                           // that the API server drops fields
}

type remembered struct {
	published string    // fingerprint of what the fleet was last refreshed for
	written   time.Time // when the status was last written
	settling  bool      // the figures written are those of a moment of change

	// The status last written and the one that the API server kept of it, pointers to the
	// kind's status; nil when it kept all.
	sent, kept any
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

// wrote remembers that a status was written, and which part of it the API server kept:
// one whose CustomResourceDefinition is older than the controller drops fields.
func wrote[S any](ctx context.Context, m *memory, name types.NamespacedName, now time.Time, sent, kept *S) {
	dropped := !equality.Semantic.DeepEqual(sent, kept)
	m.update(name, func(r *remembered) {
		r.written, r.sent, r.kept = now, nil, nil
		if dropped {
			r.sent, r.kept = sent, kept
		}
	})
	if dropped {
		m.warn.Do(func() {
			log.FromContext(ctx).Info("The API server drops fields of the status. Apply the CustomResourceDefinitions of this version of Weir.")
		})
	}
}

// asSent returns the status that was last written in place of have, if have is what the API
// server kept of it. Compared with have itself, a status with a field that is dropped
// would seem changed, and would be written, for ever.
func asSent[S any](m *memory, name types.NamespacedName, have *S) *S {
	m.mu.Lock()
	r := m.byName[name]
	m.mu.Unlock()
	if kept, ok := r.kept.(*S); ok && equality.Semantic.DeepEqual(kept, have) {
		return r.sent.(*S)
	}
	return have
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
