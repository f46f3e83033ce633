package policy

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
)

// A Part is what of a snapshot is refused by itself.
type Part string

// The parts of a snapshot.
const (
	PolicyPart Part = "policy"
	PoolPart   Part = "pool"
	FieldPart  Part = "field" // of a later version, beside policies and pool
)

// A Refusal is a part of a snapshot that is not put in force because this version of
// Weir does not understand it.
type Refusal struct {
	Part Part
	// Namespace and Name are the object's, as far as they can be read; of a FieldPart
	// Name is the field.
	Namespace, Name string
	Cause           error
	Kept            bool // the last good version stays in force
}

// named is what every version of a policy and of a pool has.
type named struct {
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
}

// refusal names the part by its path when it does not say what it is called.
func refusal(part Part, raw json.RawMessage, path string, cause error) Refusal {
	var of named
	if json.Unmarshal(raw, &of) != nil || of.Name == "" {
		return Refusal{Part: part, Name: path, Cause: cause}
	}
	return Refusal{Part: part, Namespace: of.Namespace, Name: of.Name, Cause: cause}
}

// Error says what is refused, why, and what holds in its place.
func (r Refusal) Error() string {
	name := r.Name
	if r.Namespace != "" {
		name = r.Namespace + "/" + name
	}
	cause := strings.TrimPrefix(r.Cause.Error(), "json: ")
	switch {
	case r.Part == FieldPart:
		return fmt.Sprintf("field %s is not understood", name)
	case r.Kept:
		return fmt.Sprintf("%s %s is not understood, its last good version stays: %s", r.Part, name, cause)
	default:
		return fmt.Sprintf("%s %s is not understood and not enforced: %s", r.Part, name, cause)
	}
}

// Unwrap returns the cause.
func (r Refusal) Unwrap() error { return r.Cause }

// Refusals are what of one snapshot is refused. As an error they say the cure, too.
type Refusals []Refusal

const (
	mostNamed = 3 // of the refusals of an error
	cure      = "upgrade the sidecar: restart the pod"
)

// Error names the first refusals.
func (rs Refusals) Error() string {
	var all []string
	for _, r := range rs[:min(len(rs), mostNamed)] {
		all = append(all, r.Error())
	}
	if more := len(rs) - mostNamed; more > 0 {
		all = append(all, fmt.Sprintf("%d more are not understood", more))
	}
	return strings.Join(append(all, cure), "; ")
}

// Keep puts the last good version of each refused part into s, as before has it, and
// notes so in refused. Parts that before enforced in another cluster's name, on other
// counters, do not stay. Neither does a pool of another name than the refused one: it
// does not apply any more.
//
// A version that stays is bound by its stores as every old one is: they refuse its
// generation once somebody asked with a newer one, so that the two never add up.
func (s *Snapshot) Keep(before *Snapshot, refused Refusals) {
	if before.Cluster != s.Cluster {
		return
	}
	for i := range refused {
		r := &refused[i]
		switch r.Part {
		case PolicyPart:
			r.Kept = s.keepPolicy(before, r)
		case PoolPart:
			r.Kept = s.keepPool(before, r)
		case FieldPart: // it is of none
		}
	}
}

// keepPool reports whether before has the pool, and s has room for it and no other version.
func (s *Snapshot) keepPool(before *Snapshot, r *Refusal) bool {
	want := &Pool{Namespace: r.Namespace, Name: r.Name}
	named := func(p Pool, q *Pool) int { return p.compare(q) }
	at, taken := slices.BinarySearchFunc(s.Pools, want, named)
	if taken || s.Pool != nil && s.Pool.compare(want) == 0 {
		return false
	}
	if p := before.Pool; p != nil && p.compare(want) == 0 {
		if s.Pool == nil {
			s.Pool = p
			return true
		}
		return false
	}
	old, found := slices.BinarySearchFunc(before.Pools, want, named)
	if found {
		s.Pools = slices.Insert(s.Pools, at, before.Pools[old])
	}
	return found
}

// keepPolicy reports whether before has the policy. If s has it, too, that is a defect
// of the writer of s, which Validate would then name.
func (s *Snapshot) keepPolicy(before *Snapshot, r *Refusal) bool {
	named := func(p, q Policy) int { return p.compare(&q) }
	want := Policy{Namespace: r.Namespace, Name: r.Name}
	old, found := slices.BinarySearchFunc(before.Policies, want, named)
	if !found {
		return false
	}
	at, taken := slices.BinarySearchFunc(s.Policies, want, named)
	if !taken {
		s.Policies = slices.Insert(s.Policies, at, before.Policies[old])
	}
	return !taken
}
