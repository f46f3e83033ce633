package controllers

import (
	"hash/fnv"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/weir-dev/weir/api/v1alpha1"
)

// How long a status stays as it was written, by what changed.
const (
	// progressPace is for messages and pod counts, which move with every
	// acknowledgement of a rollout.
	progressPace = time.Second
	// figuresPace is for measurements. figuresJitter, by object, keeps a leader that
	// took over from writing all of them at once.
	figuresPace   = 15 * time.Second
	figuresJitter = 3 * time.Second
)

// pace returns how long a status that was written since ago has to wait before
// next replaces it: not at all when a condition turned, and for ever, with
// changed false, when nothing changed.
func pace(have, next *v1alpha1.RateLimitPolicyStatus, uid types.UID, since time.Duration) (wait time.Duration, changed bool) {
	switch {
	case turned(have, next):
		return 0, true
	case progressed(have, next):
		return max(0, progressPace-since), true
	case figuresDiffer(have, next):
		return max(0, figuresEvery(uid)-since), true
	}
	return 0, false
}

// figuresEvery is the interval between two writes of an object's figures.
func figuresEvery(uid types.UID) time.Duration {
	h := fnv.New32a()
	_, _ = h.Write([]byte(uid))
	return figuresPace + figuresJitter*time.Duration(h.Sum32()%1024)/1024
}

// turned reports whether any condition came, went, or has another status, reason
// or generation, or a move to another store made a step.
func turned(have, next *v1alpha1.RateLimitPolicyStatus) bool {
	return have.ObservedGeneration != next.ObservedGeneration || moved(have.Store, next.Store) ||
		!slices.EqualFunc(have.Conditions, next.Conditions, func(a, b metav1.Condition) bool {
			a.Message, b.Message = "", ""
			return equality.Semantic.DeepEqual(a, b)
		})
}

func moved(have, next *v1alpha1.StoreStatus) bool {
	if have == nil || next == nil {
		return have != next
	}
	return have.Phase != next.Phase || have.Failed != next.Failed ||
		!equality.Semantic.DeepEqual(have.Active, next.Active) || !equality.Semantic.DeepEqual(have.ServesFrom, next.ServesFrom)
}

func progressed(have, next *v1alpha1.RateLimitPolicyStatus) bool {
	return !equality.Semantic.DeepEqual(have.Conditions, next.Conditions) ||
		!equality.Semantic.DeepEqual(have.Enforcement, next.Enforcement) ||
		!equality.Semantic.DeepEqual(have.Guarantee, next.Guarantee) ||
		!equality.Semantic.DeepEqual(have.Store, next.Store)
}

// figuresDiffer ignores when figures were taken: the same figures a moment later
// are not a change.
func figuresDiffer(have, next *v1alpha1.RateLimitPolicyStatus) bool {
	a, b := have.DeepCopy(), next.DeepCopy()
	for _, s := range []*v1alpha1.RateLimitPolicyStatus{a, b} {
		s.LastObservationTime = nil
		for i := range s.Limits {
			s.Limits[i].WindowEnd = nil
			for j := range s.Limits[i].HottestKeys {
				s.Limits[i].HottestKeys[j].MeasuredAt = metav1.Time{}
			}
		}
	}
	return !equality.Semantic.DeepEqual(a, b)
}
