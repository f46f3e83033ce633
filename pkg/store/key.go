package store

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"math"
	"strconv"
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
	return s.Cluster + "/" + s.Namespace + "/" + s.Policy + "/" + s.Limit
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

// String returns the key as stores use it: its scope's string, a slash and its hash, in memory that is
// taken at once, for each decision of a store needs it.
func (k Key) String() string {
	s := k.Scope
	return s.Cluster + "/" + s.Namespace + "/" + s.Policy + "/" + s.Limit + "/" + k.Hash
}

// HashValue returns the first 128 bits of the value's SHA-256 in hexadecimal: a
// key of fixed length that carries no byte of what a client sent. That of Shared(i) is
// SharedHash(i).
func HashValue(value string) string {
	if i, ok := sharedIndex(value); ok {
		return SharedHash(i)
	}
	sum := hashOf(value)
	var text [2 * len(sum)]byte
	hex.Encode(text[:], sum[:])
	return string(text[:])
}

func hashOf(value string) (first [16]byte) {
	sum := sha256.Sum256([]byte(value))
	copy(first[:], sum[:])
	return first
}

// Values that are too many to have counters of their own share those of a limit. A hash of
// the value chooses which, so that all processes agree on it, and a client that makes up
// values drains all of them only by as many units as they hold together.

// shared begins the values that stand for these counters. No header field holds it.
const shared = "\x00overflow"

// indexSize is the size of what Shared adds.
const indexSize = 4

// sharedHash is the hash of Shared(0), and sharedLast its last 32 bits.
var (
	sharedSum  = hashOf(shared)
	sharedHash = hex.EncodeToString(sharedSum[:])
	sharedLast = binary.BigEndian.Uint32(sharedSum[len(sharedSum)-indexSize:])
)

// Shared returns the value that stands for those that share the counter i, from 0 to
// math.MaxUint32. The first is the only one of processes that know no other.
func Shared(i int) string {
	if i == 0 {
		return shared
	}
	return string(binary.BigEndian.AppendUint32([]byte(shared), uint32(i)))
}

// IsShared reports whether the value may be one that Shared returned. Requests have none.
func IsShared(value string) bool { return strings.HasPrefix(value, shared) }

// sharedIndex returns i for Shared(i), and false for any other value.
func sharedIndex(value string) (i int, ok bool) {
	switch {
	case value == shared:
		return 0, true
	case len(value) == len(shared)+indexSize && IsShared(value):
		return int(binary.BigEndian.Uint32([]byte(value[len(shared):]))), true
	default:
		return 0, false
	}
}

// SharedHash returns the hash of Shared(i): that of Shared(0) but for its last 32 bits,
// which are changed by i. That another value has such a hash is as unlikely as that two
// of 2⁴⁸ values have the same 96 bits.
func SharedHash(i int) string {
	last := hex.EncodeToString(binary.BigEndian.AppendUint32(nil, sharedLast^uint32(i)))
	return sharedHash[:len(sharedHash)-len(last)] + last
}

// SharedBy returns i for SharedHash(i), and false for any other hash.
func SharedBy(hash string) (i int, ok bool) {
	end := len(sharedHash) - 2*indexSize
	if len(hash) != len(sharedHash) || hash[:end] != sharedHash[:end] {
		return 0, false
	}
	last, err := strconv.ParseUint(hash[end:], 16, 32)
	return int(uint32(last) ^ sharedLast), err == nil
}

// Share returns which of n shared counters, from 0, a value shares.
func Share(value string, n int) int {
	if n <= 1 {
		return 0
	}
	var room [256]byte // longer values take memory
	sum := sha256.Sum256(append(room[:0], value...))
	return scale(binary.BigEndian.Uint32(sum[:]), n)
}

// ShareOf returns Share of the value with the hash.
func ShareOf(hash string, n int) int {
	if n <= 1 {
		return 0
	}
	first, err := strconv.ParseUint(hash[:min(len(hash), 8)], 16, 32)
	if err != nil {
		return 0
	}
	return scale(uint32(first), n)
}

// SharedHashOf returns the hash of that one of n shared counters which the value with the
// hash shares.
func SharedHashOf(hash string, n int) string { return SharedHash(ShareOf(hash, n)) }

// scale returns x, of the numbers below 2³², as one of those below n.
func scale(x uint32, n int) int { return int(uint64(x) * uint64(min(n, math.MaxUint32)) >> 32) }
