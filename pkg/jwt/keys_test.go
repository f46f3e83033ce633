package jwt_test

import (
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"encoding/json"
	"maps"
	"strings"
	"sync"
	"testing"

	"github.com/go-jose/go-jose/v4"

	"github.com/weir-dev/weir/pkg/jwt"
)

// made are private keys, each made once: those of RSA take time.
var made = map[string]func() any{
	"rsa":     sync.OnceValue(func() any { return must(rsa.GenerateKey(rand.Reader, 2048)) }),
	"other":   sync.OnceValue(func() any { return must(rsa.GenerateKey(rand.Reader, 2048)) }),
	"weak":    sync.OnceValue(func() any { return must(rsa.GenerateKey(rand.Reader, 1024)) }),
	"p256":    sync.OnceValue(func() any { return must(ecdsa.GenerateKey(elliptic.P256(), rand.Reader)) }),
	"p384":    sync.OnceValue(func() any { return must(ecdsa.GenerateKey(elliptic.P384(), rand.Reader)) }),
	"p521":    sync.OnceValue(func() any { return must(ecdsa.GenerateKey(elliptic.P521(), rand.Reader)) }),
	"ed25519": sync.OnceValue(func() any { _, key, err := ed25519.GenerateKey(rand.Reader); return must(key, err) }),
	"oct":     func() any { return []byte(strings.Repeat("s", 32)) },
}

func must[T any](value T, err error) T {
	if err != nil {
		panic(err)
	}
	return value
}

// private returns the key of a name, which is its id, too.
func private(name string) jose.JSONWebKey { return jose.JSONWebKey{Key: made[name](), KeyID: name} }

// publicKey returns the public half of it.
func publicKey(name string) jose.JSONWebKey {
	key := private(name)
	return key.Public()
}

// set writes a key set.
func set(keys ...jose.JSONWebKey) []byte {
	return must(json.Marshal(jose.JSONWebKeySet{Keys: keys}))
}

// public returns the set of the keys with these names, as a provider has it.
func public(t testing.TB, names ...string) string {
	t.Helper()
	var keys []jose.JSONWebKey
	for _, name := range names {
		keys = append(keys, publicKey(name))
	}
	out, err := jwt.PublicKeys(set(keys...))
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// members returns a public key as JSON with members replaced.
func members(name string, replaced map[string]any) string {
	var all map[string]any
	if err := json.Unmarshal(must(publicKey(name).MarshalJSON()), &all); err != nil {
		panic(err)
	}
	maps.Copy(all, replaced)
	return string(must(json.Marshal(all)))
}

func TestPublicKeysOfASet(t *testing.T) {
	whole := public(t, "p256")
	for name, tc := range map[string]struct{ set, want string }{
		"of every kind":            {string(set(publicKey("p256"), publicKey("rsa"))), public(t, "p256", "rsa")},
		"with more than is needed": {`{"keys": [` + members("p256", map[string]any{"x5t": "AAAA", "x5u": "https://evil.example.com", "note": "n"}) + `], "more": 1}`, whole},
		"a key for signatures":     {`{"keys": [` + members("p256", map[string]any{"use": "sig"}) + `]}`, whole},
		"a key that verifies":      {`{"keys": [` + members("p256", map[string]any{"key_ops": []string{"verify"}}) + `]}`, whole},
		"a key for encryption":     {`{"keys": [` + members("rsa", map[string]any{"use": "enc"}) + `,` + members("p256", nil) + `]}`, whole},
		"a key that only encrypts": {`{"keys": [` + members("rsa", map[string]any{"key_ops": []string{"encrypt"}}) + `,` + members("p256", nil) + `]}`, whole},
		"a key of another type":    {`{"keys": [{"kty": "XYZ"}, ` + members("p256", nil) + `]}`, whole},
		"a key for another alg":    {`{"keys": [` + members("rsa", map[string]any{"alg": "RSA-OAEP"}) + `,` + members("p256", nil) + `]}`, whole},
		"a key for HS256":          {`{"keys": [` + members("rsa", map[string]any{"alg": "HS256"}) + `,` + members("p256", nil) + `]}`, whole},
		"a weak key":               {`{"keys": [` + members("weak", nil) + `,` + members("p256", nil) + `]}`, whole},
		"a long id":                {`{"keys": [` + members("rsa", map[string]any{"kid": strings.Repeat("k", 257)}) + `,` + members("p256", nil) + `]}`, whole},
		"a broken key":             {`{"keys": [` + members("rsa", map[string]any{"n": "!"}) + `,` + members("p256", nil) + `]}`, whole},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := jwt.PublicKeys([]byte(tc.set))
			if err != nil || got != tc.want {
				t.Errorf("PublicKeys = %s, %v; want %s", got, err, tc.want)
			}
			if again, err := jwt.PublicKeys([]byte(got)); err != nil || again != got {
				t.Errorf("of what it returned PublicKeys = %s, %v", again, err)
			}
		})
	}
}

func TestRefusedSets(t *testing.T) {
	many := strings.Repeat(members("p256", nil)+",", jwt.MaxKeys) + members("p256", nil)
	for name, tc := range map[string]struct{ set, want string }{
		"no JSON":            {"<html>", "is not a JSON Web Key Set"},
		"no list":            {"{}", "is not a JSON Web Key Set"},
		"two lists":          {`{"keys": [], "keys": []}`, "is not a JSON Web Key Set"},
		"no key":             {`{"keys": []}`, "has no key that verifies signatures"},
		"no usable key":      {`{"keys": [` + members("weak", nil) + `]}`, "an RSA key of 2048 to 8192 bits"},
		"a string":           {`{"keys": ["x"]}`, "keys[0] is not a JSON Web Key"},
		"a member twice":     {`{"keys": [{"kty": "EC", "kty": "RSA"}]}`, "keys[0] is not a JSON Web Key"},
		"a symmetric key":    {string(set(private("oct"))), "keys[0] is symmetric or private"},
		"a private RSA key":  {string(set(publicKey("p256"), private("rsa"))), "keys[1] is symmetric or private"},
		"a private EC key":   {string(set(private("p384"))), "keys[0] is symmetric or private"},
		"a private Ed25519":  {string(set(private("ed25519"))), "keys[0] is symmetric or private"},
		"a part of a secret": {`{"keys": [` + members("rsa", map[string]any{"dq": "AQAB"}) + `]}`, "keys[0] is symmetric or private"},
		"an unknown secret":  {`{"keys": [{"kty": "AKP", "priv": "AA"}]}`, "keys[0] is symmetric or private"},
		"too many keys":      {`{"keys": [` + many + `]}`, "has 17 keys that verify signatures, at most 16"},
		"too many bytes":     {`{"keys": [` + members("p256", nil) + `]}` + strings.Repeat(" ", jwt.MaxSet), "at most 65536 are read"},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := jwt.PublicKeys([]byte(tc.set))
			if err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("PublicKeys = %s, %v; want an error with %q", got, err, tc.want)
			}
		})
	}
}

// FuzzPublicKeys: what is sent on stays the same when it is read again, and has no secret.
func FuzzPublicKeys(f *testing.F) {
	f.Add([]byte(public(f, "rsa", "p256", "ed25519")))
	f.Add(set(private("oct"), private("p256")))
	f.Add([]byte(`{"keys": [{"kty": "OKP", "crv": "Ed25519", "x": "AA"}]}`))
	f.Fuzz(func(t *testing.T, given []byte) {
		out, err := jwt.PublicKeys(given)
		if err != nil {
			return
		}
		if again, err := jwt.PublicKeys([]byte(out)); err != nil || again != out {
			t.Fatalf("%q is read again as %q, %v", out, again, err)
		}
		var keys jose.JSONWebKeySet
		if err := json.Unmarshal([]byte(out), &keys); err != nil {
			t.Fatal(err)
		}
		for _, key := range keys.Keys {
			if !key.IsPublic() {
				t.Fatalf("%q has a key that is not public", out)
			}
		}
	})
}
