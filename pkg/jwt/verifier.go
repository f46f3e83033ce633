package jwt

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/rsa"
	"crypto/sha256"
	stdjson "encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/go-jose/go-jose/v4"
	"github.com/go-jose/go-jose/v4/json"
	josejwt "github.com/go-jose/go-jose/v4/jwt"
)

// MaxToken is the most bytes of a token that is read.
const MaxToken = 8 << 10

// maxTried is how many keys a signature is compared with, so that a token which names no
// key costs no more than this. Issuers that name none have a key or two.
const maxTried = 4

// algorithms are those that tokens may be signed with: the asymmetric ones of RFC 7518,
// section 3.1, and RFC 8037.
var algorithms = []jose.SignatureAlgorithm{
	jose.RS256, jose.RS384, jose.RS512, jose.PS256, jose.PS384, jose.PS512, jose.ES256, jose.ES384, jose.ES512, jose.EdDSA,
}

// A Provider says which tokens are accepted.
type Provider struct {
	Issuer     string   // that tokens name, not empty
	Audiences  []string // a token names at least one; none: any token of the issuer
	Algorithms []string // that tokens may be signed with, at least one: RS256 to RS512, PS256 to PS512, ES256 to ES512, EdDSA
	// ClockSkew is how far the issuer's clock may be off.
	ClockSkew time.Duration
	Keys      string // of the issuer, as PublicKeys returns them; empty: none is known, so no token is accepted
}

// A Verifier verifies the tokens of one provider, by the same keys for as long as it lives.
// It remembers those that it accepted, in bounded memory. It is safe for concurrent use.
type Verifier struct {
	provider   Provider
	algorithms []jose.SignatureAlgorithm
	keys       []jose.JSONWebKey
	accepted   cache
}

// NewVerifier returns a Verifier. The error begins with the field that is wrong.
func NewVerifier(p Provider) (*Verifier, error) {
	v := &Verifier{provider: p, accepted: newCache()}
	if p.Issuer == "" {
		return nil, errors.New("issuer is empty: write what the claim iss of its tokens is")
	}
	if p.ClockSkew < 0 {
		return nil, fmt.Errorf("clockSkew is %s: write 0s or more", p.ClockSkew)
	}
	for _, name := range p.Algorithms {
		a := jose.SignatureAlgorithm(name)
		if !slices.Contains(algorithms, a) {
			return nil, fmt.Errorf("algorithms has %q: use some of %q", name, algorithms)
		}
		v.algorithms = append(v.algorithms, a)
	}
	if len(v.algorithms) == 0 {
		return nil, errors.New("algorithms is empty: name those that tokens are signed with, such as RS256")
	}
	if p.Keys == "" {
		return v, nil
	}
	canonical, err := PublicKeys([]byte(p.Keys))
	if err != nil {
		return nil, fmt.Errorf("keys %w", err)
	}
	if canonical != p.Keys {
		return nil, errors.New("keys are not in canonical form: send what PublicKeys returns")
	}
	var set jose.JSONWebKeySet
	if err := json.Unmarshal([]byte(canonical), &set); err != nil {
		return nil, fmt.Errorf("keys cannot be read: %w", err)
	}
	v.keys = set.Keys
	return v, nil
}

// Claims returns the claims of a token in compact form that is of the provider and valid
// now; numbers are encoding/json's. They are shared and must not be changed. The error says
// why the token is not accepted, and repeats nothing of it.
func (v *Verifier) Claims(compact string, now time.Time) (map[string]any, error) {
	if len(compact) > MaxToken {
		return nil, fmt.Errorf("it has %d bytes, at most %d are read", len(compact), MaxToken)
	}
	name := sha256.Sum256([]byte(compact))
	if known, ok := v.accepted.get(name); ok {
		if !known.validAt(now) {
			return nil, errTime
		}
		return known.claims, nil
	}
	payload, err := v.signed(compact)
	if err != nil {
		return nil, err
	}
	a, err := v.accept(payload, now)
	if err != nil {
		return nil, err
	}
	a.size = len(compact)
	v.accepted.put(name, a)
	return a.claims, nil
}

var (
	errForm      = errors.New("it is not a JSON Web Token signed with an algorithm that is allowed")
	errKey       = errors.New("no key of the provider is the one that it names, and for its algorithm")
	errSignature = errors.New("its signature is not that of a key of the provider")
	errClaims    = errors.New("its claims are not a JSON object in which each name stands once")
	errExpiry    = errors.New("it has no claim exp: tokens that never expire are not accepted")
	errTime      = errors.New("it has expired, or is not valid yet")
)

// signed returns what a key of the provider has signed.
func (v *Verifier) signed(compact string) ([]byte, error) {
	token, err := jose.ParseSignedCompact(compact, v.algorithms)
	if err != nil || len(token.Signatures) != 1 {
		return nil, errForm
	}
	header := token.Signatures[0].Protected
	tried := 0
	for i := range v.keys {
		if tried == maxTried {
			break
		}
		key := &v.keys[i]
		if header.KeyID != "" && key.KeyID != "" && header.KeyID != key.KeyID || !fits(key, jose.SignatureAlgorithm(header.Algorithm)) {
			continue
		}
		tried++
		if payload, err := token.Verify(key.Key); err == nil {
			return payload, nil
		}
	}
	if tried == 0 {
		return nil, errKey
	}
	return nil, errSignature
}

// accept judges what was signed.
func (v *Verifier) accept(payload []byte, now time.Time) (acceptance, error) {
	var registered josejwt.Claims
	var all map[string]any
	// This decoder refuses a name that stands twice in an object, at any depth.
	if json.Unmarshal(payload, &all) != nil || all == nil || json.Unmarshal(payload, &registered) != nil {
		return acceptance{}, errClaims
	}
	if registered.Expiry == nil {
		return acceptance{}, errExpiry
	}
	skew := v.provider.ClockSkew
	a := acceptance{until: registered.Expiry.Time().Add(skew)}
	for _, from := range []*josejwt.NumericDate{registered.NotBefore, registered.IssuedAt} {
		if from != nil && from.Time().Add(-skew).After(a.from) {
			a.from = from.Time().Add(-skew)
		}
	}
	if !a.validAt(now) {
		return acceptance{}, errTime
	}
	expected := josejwt.Expected{Issuer: v.provider.Issuer, AnyAudience: v.provider.Audiences, Time: now}
	if err := registered.ValidateWithLeeway(expected, skew); err != nil {
		return acceptance{}, fmt.Errorf("it is not for this provider: %w", err)
	}
	dec := stdjson.NewDecoder(bytes.NewReader(payload))
	dec.UseNumber()
	if err := dec.Decode(&a.claims); err != nil {
		return acceptance{}, errClaims
	}
	return a, nil
}

// fits reports whether the key verifies signatures of the algorithm. That follows from the
// key alone, so a token cannot choose what its key is taken for.
func fits(key *jose.JSONWebKey, a jose.SignatureAlgorithm) bool {
	if key.Algorithm != "" && key.Algorithm != string(a) {
		return false
	}
	switch of := key.Key.(type) {
	case *rsa.PublicKey:
		return a[0] == 'R' || a[0] == 'P'
	case *ecdsa.PublicKey:
		return curves[a] == of.Curve.Params().BitSize
	case ed25519.PublicKey:
		return a == jose.EdDSA
	default:
		return false
	}
}

// curves are the bits of the curve that goes with an algorithm.
var curves = map[jose.SignatureAlgorithm]int{jose.ES256: 256, jose.ES384: 384, jose.ES512: 521}
