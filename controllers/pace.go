package controllers

import (
	"hash/fnv"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// How long a status stays as it was written, by what changed.
const (
	// progressPace is for messages and pod counts, which move with every
	// acknowledgement of a rollout.
	progressPace = time.Second
	// settlePace is for measurements once after what they follow from changed: the
	// generation, or among how many something is divided.
	settlePace = 2 * time.Second
	// figuresPace is for measurements. figuresJitter, by object, keeps a leader that
	// took over from writing all of them at once.
	figuresPace   = 15 * time.Second
	figuresJitter = 3 * time.Second
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

// pace returns how long a status that was written since ago has to wait before a
// changed one replaces it; for ever, with changed false, when nothing changed.
func pace(c change, uid types.UID, since time.Duration) (wait time.Duration, changed bool) {
	switch c {
	case turned:
		return 0, true
	case progressed:
		return max(0, progressPace-since), true
	case redivided:
		return max(0, settlePace-since), true
	case figuresNew:
		return max(0, figuresEvery(uid)-since), true
	case unchanged:
	}
	return 0, false
}

// figuresEvery is the interval between two writes of an object's figures.
func figuresEvery(uid types.UID) time.Duration {
	h := fnv.New32a()
	_, _ = h.Write([]byte(uid))
	return figuresPace + figuresJitter*time.Duration(h.Sum32()%1024)/1024
}

// conditionsTurned reports whether any condition came, went, or has another status,
// reason or generation.
func conditionsTurned(have, next []metav1.Condition) bool {
	return !slices.EqualFunc(have, next, func(a, b metav1.Condition) bool {
		a.Message, b.Message = "", ""
		return equality.Semantic.DeepEqual(a, b)
	})
}
