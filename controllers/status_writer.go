package controllers

import (
	"context"
	"fmt"
	"hash/fnv"
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"
)

// staleRetry leaves the cache time to catch up with an object.
const staleRetry = 200 * time.Millisecond

// writeStatus writes the status that after has, and leaves in after the object as the API
// server has it then. It reports true when the status was computed from an object that
// changed or went meanwhile; then nothing is written.
//
// The first status of an object is sent whole, which the API server applies in less time
// than a patch. Another one is a patch, which leaves fields that this version does not
// know: a newer one may have led before.
func writeStatus[T any, O interface {
	*T
	client.Object
}](ctx context.Context, c client.Client, first bool, before, after O) (stale bool, err error) {
	// An answer read into after would leave there what the API server dropped.
	answer := O(new(T))
	if first {
		err = putStatus(ctx, c, after, answer)
	} else {
		err = patchStatus(ctx, c, before, after, answer)
	}
	switch {
	case apierrors.IsConflict(err) || apierrors.IsNotFound(err):
		return true, nil
	case err != nil:
		return false, fmt.Errorf("writing the status: %w", err)
	}
	*after = *answer
	return false, nil
}

// putStatus replaces the status by that of after, unless the object is another than after
// meanwhile. The API server changes nothing else of it.
func putStatus(ctx context.Context, c client.Client, after, answer client.Object) error {
	kind, err := c.GroupVersionKindFor(after)
	if err != nil {
		return err
	}
	fields, err := runtime.DefaultUnstructuredConverter.ToUnstructured(after)
	if err != nil {
		return err
	}
	whole := &unstructured.Unstructured{Object: fields} // into which an answer is read afresh
	whole.SetGroupVersionKind(kind)
	if err := c.Status().Update(ctx, whole); err != nil {
		return err
	}
	return runtime.DefaultUnstructuredConverter.FromUnstructured(whole.Object, answer)
}

// patchStatus sends what is different in after, unless the object is another than before
// meanwhile.
func patchStatus(ctx context.Context, c client.Client, before, after, answer client.Object) error {
	patch := client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})
	data, err := patch.Data(after)
	if err != nil {
		return err
	}
	answer.SetNamespace(after.GetNamespace())
	answer.SetName(after.GetName())
	return c.Status().Patch(ctx, answer, client.RawPatch(patch.Type(), data))
}

// How long a status stays as it was written, by what changed.
const (
	// progressInterval is for messages and pod counts, which move with every
	// acknowledgement of a rollout.
	progressInterval = time.Second
	// settleInterval is for measurements once after what they follow from changed: the
	// generation, or among how many something is divided.
	settleInterval = 2 * time.Second
	// figuresInterval is for measurements. figuresJitter, by object, keeps a leader that
	// took over from writing all of them at once.
	figuresInterval = 15 * time.Second
	figuresJitter   = 3 * time.Second
)

// A change is the most urgent that differs between two versions of a status.
type change int

// The changes, from none to the one that does not wait.
const (
	unchanged  change = iota
	figuresNew        // a measurement
	redivided         // a measurement, and what it follows from
	progressed        // a message or a count
	turned            // a condition, or what else is written at once
)

// writeDelay returns how long a status that was written since ago has to wait before a
// changed one replaces it; for ever, with changed false, when nothing changed.
func writeDelay(c change, uid types.UID, since time.Duration) (wait time.Duration, changed bool) {
	switch c {
	case turned:
		return 0, true
	case progressed:
		return max(0, progressInterval-since), true
	case redivided:
		return max(0, settleInterval-since), true
	case figuresNew:
		return max(0, figuresIntervalOf(uid)-since), true
	case unchanged:
	}
	return 0, false
}

// figuresIntervalOf is the interval between two writes of an object's figures.
func figuresIntervalOf(uid types.UID) time.Duration {
	h := fnv.New32a()
	_, _ = h.Write([]byte(uid))
	return figuresInterval + figuresJitter*time.Duration(h.Sum32()%1024)/1024
}

// conditionsTurned reports whether any condition came, went, or has another status,
// reason or generation.
func conditionsTurned(have, next []metav1.Condition) bool {
	return !slices.EqualFunc(have, next, func(a, b metav1.Condition) bool {
		a.Message, b.Message = "", ""
		return equality.Semantic.DeepEqual(a, b)
	})
}

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
