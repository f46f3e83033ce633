package resolve

import (
	"context"
	"fmt"

	"github.com/weir-dev/weir/pkg/jwt"
	"github.com/weir-dev/weir/pkg/policy"
)

// keysName is the key of a Secret that holds a JSON Web Key Set.
const keysName = "jwks.json"

// Keys find the public keys of providers of tokens. They are safe for concurrent use.
type Keys struct {
	Secrets *Secrets
	// URL returns the keys of the set at a URL that objects of a namespace name, as they
	// were read last, and the error of the last reading. It does not block.
	URL func(namespace, url string) (string, error)
}

// Of returns the keys of a provider of a policy in the namespace: those that are part of
// it, or those that it names. It may ask the API server. An error says why they cannot be
// had or may be old, and the cure. It repeats nothing of what was read.
func (k *Keys) Of(ctx context.Context, namespace string, p policy.JWTProvider) (string, error) {
	switch {
	case p.URL != "":
		return k.URL(namespace, p.URL)
	case p.Secret != "":
		return k.inSecret(ctx, p.Secret)
	}
	return p.Keys, nil
}

func (k *Keys) inSecret(ctx context.Context, secret string) (string, error) {
	data, _, err := k.Secrets.named(ctx, secret)
	if err != nil {
		return "", err
	}
	set, found := data[keysName]
	if !found {
		return "", fmt.Errorf("secret %s has no key %s: store the JSON Web Key Set under it", secret, keysName)
	}
	keys, err := jwt.PublicKeys(set)
	if err != nil {
		return "", fmt.Errorf("%s of secret %s %w", keysName, secret, err)
	}
	return keys, nil
}

// setKeys sets the keys of every provider, none where they cannot be had: a sidecar goes on
// with those that it has.
func (k *Keys) setKeys(ctx context.Context, s *policy.Snapshot) {
	for i := range s.Policies {
		for j := range s.Policies[i].JWTProviders {
			p := &s.Policies[i].JWTProviders[j]
			p.Keys, _ = k.Of(ctx, s.Policies[i].Namespace, *p)
		}
	}
}
