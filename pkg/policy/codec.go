package policy

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
)

// MaxSize is the most bytes an encoded snapshot may have.
const MaxSize = 4 << 20

// Encode returns s as canonical JSON and the version that names exactly these
// bytes. It refuses a snapshot that does not validate. Of stores behind the controller it
// writes what sidecars are sent of them.
func Encode(s Snapshot) (data []byte, version string, err error) {
	if err := s.Validate(); err != nil {
		return nil, "", err
	}
	s.Policies = slices.Clone(s.Policies)
	for i := range s.Policies {
		s.Policies[i].Store = s.Policies[i].Store.Sent()
	}
	data, err = json.Marshal(s)
	if err != nil {
		return nil, "", fmt.Errorf("encode snapshot: %w", err)
	}
	if len(data) > MaxSize {
		return nil, "", fmt.Errorf("the snapshot has %d bytes, more than %d: select fewer policies for this pod", len(data), MaxSize)
	}
	return data, Version(data), nil
}

// Version returns the name of an encoded snapshot: "sha256:" and the digest of
// its bytes in hexadecimal.
func Version(data []byte) string {
	sum := sha256.Sum256(data)
	return "sha256:" + hex.EncodeToString(sum[:])
}

// Pack compresses an encoded snapshot into text for an environment variable.
func Pack(data []byte) (string, error) {
	var packed bytes.Buffer
	text := base64.NewEncoder(base64.StdEncoding, &packed)
	zip := gzip.NewWriter(text)
	if _, err := zip.Write(data); err != nil {
		return "", fmt.Errorf("pack snapshot: %w", err)
	}
	if err := errors.Join(zip.Close(), text.Close()); err != nil {
		return "", fmt.Errorf("pack snapshot: %w", err)
	}
	return packed.String(), nil
}

// Unpack returns what Pack compressed.
func Unpack(packed string) ([]byte, error) {
	raw, err := base64.StdEncoding.DecodeString(packed)
	if err != nil {
		return nil, fmt.Errorf("unpack snapshot: %w", err)
	}
	zip, err := gzip.NewReader(bytes.NewReader(raw))
	if err != nil {
		return nil, fmt.Errorf("unpack snapshot: %w", err)
	}
	data, err := io.ReadAll(io.LimitReader(zip, MaxSize+1))
	if err != nil {
		return nil, fmt.Errorf("unpack snapshot: %w", err)
	}
	if len(data) > MaxSize {
		return nil, fmt.Errorf("unpack snapshot: it has more than %d bytes", MaxSize)
	}
	return data, nil
}

// Decode returns the snapshot that Encode wrote, or an error, which may be of type
// Refusals, when not all of it can be put in force.
func Decode(data []byte) (Snapshot, error) {
	s, refused, err := DecodeParts(data)
	if err == nil && len(refused) > 0 {
		err = refused
	}
	if err != nil {
		return Snapshot{}, err
	}
	return s, nil
}

// DecodeParts returns the snapshot that Encode wrote, in this version or another, and the parts
// that this version does not understand, which the snapshot then lacks. A policy, or a pool,
// with an unknown field or a value that does not validate is refused as a whole, since enforcing
// half of a policy is not enforcing it. It is refused alone, since the others mean what they say
// all the same. An unknown field beside them is refused as well. The error is for data that is
// not a snapshot at all.
func DecodeParts(data []byte) (Snapshot, Refusals, error) {
	e, err := Split(data)
	if err != nil {
		return Snapshot{}, nil, err
	}
	return e.Decode()
}

// Entries are an encoded snapshot, taken apart. What Encode wrote of an entry depends on nothing
// beside it.
type Entries struct {
	Cluster  string            `json:"cluster"`
	Policies []json.RawMessage `json:"policies,omitempty"`
	Pool     json.RawMessage   `json:"pool,omitempty"` // nil for none
	Pools    []json.RawMessage `json:"pools,omitempty"`

	unknown []string // fields of a later version
}

// Split takes an encoded snapshot apart, of this version or another. The entries share its bytes.
func Split(data []byte) (*Entries, error) {
	parts, err := split(data)
	if err != nil {
		return nil, err
	}
	e := &Entries{}
	for _, known := range []struct {
		field string
		into  any
	}{{"cluster", &e.Cluster}, {"policies", &e.Policies}, {"pools", &e.Pools}} {
		if err := read(parts, known.field, known.into); err != nil {
			return nil, err
		}
	}
	if raw, found := parts["pool"]; found && string(raw) != "null" {
		e.Pool = raw
	}
	for _, field := range slices.Sorted(maps.Keys(parts)) {
		if !slices.Contains([]string{"cluster", "policies", "pool", "pools"}, field) {
			e.unknown = append(e.unknown, field)
		}
	}
	return e, nil
}

// Unknown reports whether there are fields of a later version beside the entries.
func (e *Entries) Unknown() bool { return len(e.unknown) > 0 }

// Decode is DecodeParts of the entries.
func (e *Entries) Decode() (Snapshot, Refusals, error) {
	s := Snapshot{Cluster: e.Cluster}
	var refused Refusals
	for i, raw := range e.Policies {
		p, err := decodePart(raw, entry("policies", i), (*Policy).validate)
		if err != nil {
			refused = append(refused, refusal(PolicyPart, raw, entry("policies", i), err))
		} else {
			s.Policies = append(s.Policies, *p)
		}
	}
	if e.Pool != nil {
		var err error
		if s.Pool, err = decodePart(e.Pool, "pool", (*Pool).validate); err != nil {
			refused = append(refused, refusal(PoolPart, e.Pool, "pool", err))
		}
	}
	for i, raw := range e.Pools {
		p, err := decodePart(raw, entry("pools", i), (*Pool).validate)
		if err != nil {
			refused = append(refused, refusal(PoolPart, raw, entry("pools", i), err))
		} else {
			s.Pools = append(s.Pools, *p)
		}
	}
	for _, field := range e.unknown {
		refused = append(refused, Refusal{Part: FieldPart, Name: field, Cause: errUnknown})
	}
	var p problems
	s.validateFrame(&p)
	if err := errors.Join(p...); err != nil {
		return Snapshot{}, nil, err
	}
	return s, refused, nil
}

var errUnknown = errors.New("it is not known")

// split returns the fields of an encoded snapshot.
func split(data []byte) (map[string]json.RawMessage, error) {
	if len(data) > MaxSize {
		return nil, fmt.Errorf("the snapshot has %d bytes, more than %d", len(data), MaxSize)
	}
	dec := json.NewDecoder(bytes.NewReader(data))
	var parts map[string]json.RawMessage
	if err := dec.Decode(&parts); err != nil {
		return nil, fmt.Errorf("decode snapshot: %w", err)
	}
	if _, err := dec.Token(); !errors.Is(err, io.EOF) {
		return nil, errors.New("decode snapshot: more data follows the snapshot")
	}
	return parts, nil
}

// read decodes a field that every version has.
func read(parts map[string]json.RawMessage, field string, into any) error {
	raw, found := parts[field]
	if !found {
		return nil
	}
	if err := json.Unmarshal(raw, into); err != nil {
		return fmt.Errorf("decode snapshot: %s: %w", field, err)
	}
	return nil
}

// decodePart decodes a policy or a pool. It refuses unknown fields and what does not
// validate.
func decodePart[T any](raw json.RawMessage, path string, validate func(*T, *problems, string)) (*T, error) {
	dec := json.NewDecoder(bytes.NewReader(raw))
	dec.DisallowUnknownFields()
	part := new(T)
	if err := dec.Decode(part); err != nil {
		return nil, err
	}
	var p problems
	if validate(part, &p, path); len(p) > 0 {
		return nil, errors.Join(p...)
	}
	return part, nil
}

// The values of the secret that Store.Secret names. Each may be missing.
const (
	SecretUsername = "username"
	SecretPassword = "password"

	SecretSentinelUsername = "sentinel-username" // of Sentinels, which have users of their own
	SecretSentinelPassword = "sentinel-password"

	SecretToken = "rest-token" // of a Redis over HTTP, which needs one; not token, as those of service accounts are called

	SecretAuthority   = "ca.crt"  // PEM, of the signer of the server's certificate; the system's when missing
	SecretCertificate = "tls.crt" // PEM, of the client
	SecretPrivateKey  = "tls.key" // PEM, of the client
)

// Credentials returns what a store reads of the data of a secret. Nothing else of it is
// sent to sidecars.
func Credentials(data map[string][]byte) map[string][]byte {
	data = maps.Clone(data)
	maps.DeleteFunc(data, func(key string, _ []byte) bool {
		switch key {
		case SecretUsername, SecretPassword, SecretSentinelUsername, SecretSentinelPassword, SecretToken,
			SecretAuthority, SecretCertificate, SecretPrivateKey:
			return false
		}
		return true
	})
	return data
}
