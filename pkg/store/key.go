package store

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"
)

// A Scope names one limit of one policy in one cluster. All counters of the
// limit belong to it, whatever the policy's UID or generation: a policy that is
// edited, or deleted and created again, finds the counts it left.
type Scope struct {
	Cluster, Namespace, Policy, Limit string
}

// String returns the scope's parts joined by slashes. Kubernetes names hold no
// slash, so different scopes have different strings.
func (s Scope) String() string {
	return strings.Join([]string{s.Cluster, s.Namespace, s.Policy, s.Limit}, "/")
}

// Has reports whether the counter is one of the limit's: a Scope is a Part.
func (s Scope) Has(k Key) bool { return k.Scope == s }

// A Key names one counter.
type Key struct {
	Scope Scope
	// Hash stands for the value the counter is kept for, by HashValue; empty when
	// the limit has one counter for the whole fleet.
	Hash string
}

// String returns the key as stores use it.
func (k Key) String() string { return k.Scope.String() + "/" + k.Hash }

// HashValue returns the first 128 bits of the value's SHA-256 in hexadecimal: a
// key of fixed length that carries no byte of what a client sent. That of Shared(i) is
// SharedHash(i).
func HashValue(value string) string {
	if i, ok := sharedIndex(value); ok {
		return SharedHash(i)
	}
	return hex.EncodeToString(hashOf(value))
}

func hashOf(value string) []byte {
	sum := sha256.Sum256([]byte(value))
	return sum[:16]
}
