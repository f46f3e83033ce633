package policy

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
)

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
// that this version does not understand, which the snapshot then lacks. A policy, or the pool,
// with an unknown field or a value that does not validate is refused as a whole, since enforcing
// half of a policy is not enforcing it. It is refused alone, since the others mean what they say
// all the same. An unknown field beside them is refused as well. The error is for data that is
// not a snapshot at all.
func DecodeParts(data []byte) (Snapshot, Refusals, error) {
	parts, err := split(data)
	if err != nil {
		return Snapshot{}, nil, err
	}
	var s Snapshot
	if err := read(parts, "cluster", &s.Cluster); err != nil {
		return Snapshot{}, nil, err
	}
	var policies []json.RawMessage
	if err := read(parts, "policies", &policies); err != nil {
		return Snapshot{}, nil, err
	}
	var refused Refusals
	for i, raw := range policies {
		p, err := decodePart(raw, entry("policies", i), (*Policy).validate)
		if err != nil {
			refused = append(refused, refusal(PolicyPart, raw, entry("policies", i), err))
		} else {
			s.Policies = append(s.Policies, *p)
		}
	}
	if raw, found := parts["pool"]; found && string(raw) != "null" {
		if s.Pool, err = decodePart(raw, "pool", (*Pool).validate); err != nil {
			refused = append(refused, refusal(PoolPart, raw, "pool", err))
		}
	}
	for _, field := range slices.Sorted(maps.Keys(parts)) {
		if !slices.Contains([]string{"cluster", "policies", "pool"}, field) {
			refused = append(refused, Refusal{Part: FieldPart, Name: field, Cause: errUnknown})
		}
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
