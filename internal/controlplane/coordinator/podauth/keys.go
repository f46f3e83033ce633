package podauth

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/go-jose/go-jose/v4"
	"github.com/go-jose/go-jose/v4/jwt"
	"github.com/go-logr/logr"
)

// Paths under which an API server publishes who issues its service-account tokens and
// the keys that verify them (OpenID Connect Discovery 1.0, section 4).
const (
	discoveryPath = "/.well-known/openid-configuration"
	keysPath      = "/openid/v1/jwks"
)

const (
	keysFreshFor = 5 * time.Minute  // then they are read again
	keysValidFor = 10 * time.Minute // without a newer reading
	keysPause    = 10 * time.Second // between two readings
)

// tokenAlgorithms are those with which an API server signs.
var tokenAlgorithms = []jose.SignatureAlgorithm{jose.RS256, jose.ES256, jose.ES384, jose.ES512}

// Keys are the public keys of the service-account tokens of a cluster. A token that
// they verify needs no review. They are read on demand; while they cannot be read, every
// token is reviewed. Safe for concurrent use.
type Keys struct {
	get func(ctx context.Context, path string) ([]byte, error)
	log logr.Logger

	mu      sync.Mutex // held while they are read, so that others wait for the same answer
	current keySet
	tried   time.Time
}

// A keySet is what one reading found.
type keySet struct {
	issuer string
	keys   jose.JSONWebKeySet
	read   time.Time
}

// NewKeys returns the keys that get reads from the API server, by their paths.
func NewKeys(get func(ctx context.Context, path string) ([]byte, error), log logr.Logger) *Keys {
	return &Keys{get: get, log: log}
}

// A verdict is what the keys say about a token.
type verdict int

const (
	undecided verdict = iota // only the API server can decide
	verified
	forged
)

// verify decides on a token that claims to be of the pod. Undecided are tokens of other
// issuers, those signed with an unknown key, and those outside their time by this clock.
// That the pod exists is for the caller to check. It blocks while the keys are read.
func (k *Keys) verify(ctx context.Context, token string, claim Identity, now time.Time) verdict {
	if k == nil {
		return undecided
	}
	parsed, err := jwt.ParseSigned(token, tokenAlgorithms)
	if err != nil || len(parsed.Headers) != 1 {
		return undecided
	}
	issuer, key := k.key(ctx, parsed.Headers[0].KeyID, now)
	if key == nil {
		return undecided
	}
	var registered jwt.Claims
	var bound claims
	if err := parsed.Claims(key, &registered, &bound); err != nil {
		return forged
	}
	switch {
	case registered.Issuer != issuer,
		registered.Expiry == nil || !now.Before(registered.Expiry.Time()),
		registered.NotBefore != nil && now.Before(registered.NotBefore.Time()):
		return undecided
	case bound.identity() != claim,
		!slices.Contains(registered.Audience, Audience),
		!strings.HasPrefix(registered.Subject, serviceAccount+claim.Namespace+":"):
		return forged
	}
	return verified
}

// key returns the issuer and the key of that id, nil when there is none. Keys that are
// old, or lack this one, are read again first.
func (k *Keys) key(ctx context.Context, id string, now time.Time) (issuer string, key any) {
	k.mu.Lock()
	defer k.mu.Unlock()
	found := k.current.keys.Key(id)
	if (len(found) == 0 || now.Sub(k.current.read) >= keysFreshFor) && now.Sub(k.tried) >= keysPause {
		k.tried = now
		next, err := k.read(ctx, now)
		if err != nil {
			k.log.Error(err, "the keys of service-account tokens cannot be read; the API server reviews tokens instead. "+
				"Allow the controller to get "+discoveryPath+" and "+keysPath)
		} else {
			k.current, found = next, next.keys.Key(id)
		}
	}
	if len(found) != 1 || now.Sub(k.current.read) >= keysValidFor {
		return "", nil
	}
	return k.current.issuer, found[0].Key
}

func (k *Keys) read(ctx context.Context, now time.Time) (keySet, error) {
	ctx, cancel := context.WithTimeout(ctx, reviewTimeout)
	defer cancel()
	set := keySet{read: now}
	var discovery struct {
		Issuer string `json:"issuer"`
	}
	for _, document := range []struct {
		path string
		into any
	}{{discoveryPath, &discovery}, {keysPath, &set.keys}} {
		data, err := k.get(ctx, document.path)
		if err != nil {
			return keySet{}, fmt.Errorf("get %s: %w", document.path, err)
		}
		if err := json.Unmarshal(data, document.into); err != nil {
			return keySet{}, fmt.Errorf("%s is not valid: %w", document.path, err)
		}
	}
	if discovery.Issuer == "" {
		return keySet{}, errors.New(discoveryPath + " names no issuer")
	}
	set.issuer = discovery.Issuer
	return set, nil
}
