package jwt

import (
	"crypto/rsa"
	stdjson "encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/go-jose/go-jose/v4"
	"github.com/go-jose/go-jose/v4/json"
)

// Bounds of a JSON Web Key Set.
const (
	MaxSet  = 64 << 10 // bytes, as it is published
	MaxKeys = 16       // that verify signatures

	maxKeyID       = 256 // bytes
	minRSA, maxRSA = 2048, 8192
)

// publicMembers are all that is kept of a key.
var publicMembers = []string{"kty", "kid", "alg", "crv", "n", "e", "x", "y"}

// privateMembers are those of symmetric and private keys: RFC 7518, section 6, and RFC 9964.
var privateMembers = []string{"k", "d", "p", "q", "dp", "dq", "qi", "oth", "priv"}

// PublicKeys returns the keys of a JSON Web Key Set (RFC 7517) that verify signatures, as a
// set in canonical form, which is all that has to be sent to verify tokens. Keys for
// encryption, and keys that are not understood, are left out. A set with a symmetric or
// private key is refused, because readers of such a set can make tokens. The error says
// what is wrong and repeats nothing of the set.
func PublicKeys(set []byte) (string, error) {
	if len(set) > MaxSet {
		return "", fmt.Errorf("has %d bytes, at most %d are read: remove keys and certificates that are not needed", len(set), MaxSet)
	}
	var listed struct {
		Keys []json.RawMessage `json:"keys"`
	}
	if json.Unmarshal(set, &listed) != nil || listed.Keys == nil {
		return "", errors.New(`is not a JSON Web Key Set: write an object with a list of keys, {"keys": [...]}`)
	}
	var public jose.JSONWebKeySet
	for i, raw := range listed.Keys {
		key, err := parseKey(raw)
		if err != nil {
			return "", fmt.Errorf("keys[%d] %w", i, err)
		}
		if usable(&key) {
			public.Keys = append(public.Keys, key)
		}
	}
	switch n := len(public.Keys); {
	case n == 0:
		return "", fmt.Errorf("has no key that verifies signatures: publish an RSA key of %d to %d bits, one on the curve P-256, P-384 or P-521, or one of Ed25519", minRSA, maxRSA)
	case n > MaxKeys:
		return "", fmt.Errorf("has %d keys that verify signatures, at most %d are read: remove those that are not in use any more", n, MaxKeys)
	}
	canonical, err := json.Marshal(public)
	if err != nil {
		return "", errors.New("has keys that cannot be written again")
	}
	return string(canonical), nil
}

// parseKey returns a key without all that is not needed to verify signatures. One that
// verifies none, or is not understood, is zero.
func parseKey(raw []byte) (jose.JSONWebKey, error) {
	var members map[string]stdjson.RawMessage
	if json.Unmarshal(raw, &members) != nil {
		return jose.JSONWebKey{}, errors.New("is not a JSON Web Key: write an object, and each of its members once")
	}
	for _, name := range privateMembers {
		if _, found := members[name]; found {
			return jose.JSONWebKey{}, errors.New("is symmetric or private, so tokens can be made with it: publish public keys only, and replace this one")
		}
	}
	if !verifies(raw) {
		return jose.JSONWebKey{}, nil
	}
	return publicKey(members), nil
}

// verifies reports whether signatures are what a key is for, as far as it says.
func verifies(raw []byte) bool {
	var purpose struct {
		Use        string   `json:"use"`
		Operations []string `json:"key_ops"`
	}
	return json.Unmarshal(raw, &purpose) == nil && (purpose.Use == "" || purpose.Use == "sig") &&
		(purpose.Operations == nil || slices.Contains(purpose.Operations, "verify"))
}

// publicKey returns the key that the public members make, zero where they make none.
func publicKey(members map[string]stdjson.RawMessage) (key jose.JSONWebKey) {
	for name := range members {
		if !slices.Contains(publicMembers, name) {
			delete(members, name)
		}
	}
	if reduced, err := stdjson.Marshal(members); err != nil || json.Unmarshal(reduced, &key) != nil {
		return jose.JSONWebKey{}
	}
	return key
}

// usable reports whether there is an algorithm for which the key verifies signatures.
func usable(key *jose.JSONWebKey) bool {
	if of, ok := key.Key.(*rsa.PublicKey); ok && (of.N.BitLen() < minRSA || of.N.BitLen() > maxRSA) {
		return false
	}
	return len(key.KeyID) <= maxKeyID && slices.ContainsFunc(algorithms, func(a jose.SignatureAlgorithm) bool { return fits(key, a) })
}
