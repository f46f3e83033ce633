package check

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"unicode/utf8"

	"github.com/weir-dev/weir/internal/sidecar/enforce"
	"github.com/weir-dev/weir/pkg/limiter"
	"github.com/weir-dev/weir/pkg/policy"
)

// Bounds of a request.
const (
	maxBody = 16 << 10
	maxName = 253  // bytes of policy and limit
	maxKey  = 1024 // bytes of key and tenant
)

// A fieldError says what is wrong with a field and what to send instead.
type fieldError struct{ field, problem string }

func (e *fieldError) Error() string { return fmt.Sprintf("field %q %s", e.field, e.problem) }

// An example is what a request looks like.
const example = `{"policy": "...", "limit": "...", "key": "...", "cost": 1}`

// parse reads a request: one JSON object whose names are known, appear once and
// hold what they should. A lenient reader would count the wrong thing in silence.
func parse(body []byte) (enforce.Query, error) {
	q := enforce.Query{Cost: 1}
	err := readBody(body, func(field string, dec *json.Decoder) error {
		if field == "peek" {
			return readBool(dec, field, &q.Peek)
		}
		return readField(&q, field, dec, ", cost and peek")
	})
	if err != nil {
		return enforce.Query{}, err
	}
	return q, validate(q)
}

// readBody reads the one object that is the body.
func readBody(body []byte, readValue func(field string, dec *json.Decoder) error) error {
	if !utf8.Valid(body) {
		return errors.New("the body is not UTF-8")
	}
	dec := json.NewDecoder(bytes.NewReader(body))
	if open, err := dec.Token(); err != nil || open != json.Delim('{') {
		return errors.New("the body is not a JSON object: send " + example)
	}
	if err := readObject(dec, readValue); err != nil {
		return err
	}
	if _, err := dec.Token(); !errors.Is(err, io.EOF) {
		return errors.New("more data follows the JSON object: send one object")
	}
	return nil
}

// readObject reads the rest of an object that is open.
func readObject(dec *json.Decoder, readValue func(field string, dec *json.Decoder) error) error {
	seen := make(map[string]bool)
	for dec.More() {
		name, err := dec.Token()
		if err != nil {
			return invalid(err)
		}
		field, _ := name.(string) // the decoder allows no other token here
		if seen[field] {
			return &fieldError{field, "appears twice: send it once"}
		}
		seen[field] = true
		if err := readValue(field, dec); err != nil {
			return err
		}
	}
	if _, err := dec.Token(); err != nil {
		return invalid(err)
	}
	return nil
}

func invalid(err error) error { return fmt.Errorf("the body is not valid JSON: %w", err) }

// readField reads the value of a field. Others are known besides policy, limit, key and tenant.
func readField(q *enforce.Query, field string, dec *json.Decoder, others string) error {
	switch field {
	case "policy":
		return readString(dec, field, &q.Policy)
	case "limit":
		return readString(dec, field, &q.Limit)
	case "key":
		return readKey(dec, q)
	case "tenant":
		return readString(dec, field, &q.Tenant)
	case "cost":
		return readCost(dec, &q.Cost)
	default:
		return &fieldError{field, "is not known: send policy, limit, key, tenant" + others}
	}
}

// readKey reads a string, or a list of them.
func readKey(dec *json.Decoder, q *enforce.Query) error {
	value, err := dec.Token()
	if err != nil {
		return invalid(err)
	}
	if text, ok := value.(string); ok {
		q.Key = text
		return nil
	}
	if value != json.Delim('[') {
		return &fieldError{"key", "is neither a string nor a list of strings: put it in quotes"}
	}
	for dec.More() {
		var part string
		if err := readString(dec, "key", &part); err != nil {
			return err
		}
		if q.Parts = append(q.Parts, part); len(q.Parts) > policy.MaxParts {
			return &fieldError{"key", fmt.Sprintf("has more than %d parts", policy.MaxParts)}
		}
	}
	if _, err := dec.Token(); err != nil {
		return invalid(err)
	}
	if len(q.Parts) == 1 {
		q.Key, q.Parts = q.Parts[0], nil
	}
	return nil
}

func readString(dec *json.Decoder, field string, to *string) error {
	value, err := dec.Token()
	if err != nil {
		return invalid(err)
	}
	text, ok := value.(string)
	if !ok {
		return &fieldError{field, "is not a string: put it in quotes"}
	}
	*to = text
	return nil
}

func readBool(dec *json.Decoder, field string, to *bool) error {
	value, err := dec.Token()
	if err != nil {
		return invalid(err)
	}
	truth, ok := value.(bool)
	if !ok {
		return &fieldError{field, "is neither true nor false: send one of them"}
	}
	*to = truth
	return nil
}

func readCost(dec *json.Decoder, to *int64) error {
	var raw json.RawMessage
	if err := dec.Decode(&raw); err != nil {
		return invalid(err)
	}
	// null would leave the cost as it was.
	if string(raw) == "null" || json.Unmarshal(raw, to) != nil || *to < 1 || *to > limiter.MaxLimit {
		return &fieldError{"cost", fmt.Sprintf("is not a whole number from 1 to %d", limiter.MaxLimit)}
	}
	return nil
}

func validate(q enforce.Query) error {
	for _, f := range []struct{ name, value string }{{"policy", q.Policy}, {"limit", q.Limit}} {
		switch {
		case f.value == "":
			return &fieldError{f.name, "is missing: name the " + f.name}
		case len(f.value) > maxName:
			return &fieldError{f.name, fmt.Sprintf("has more than %d bytes", maxName)}
		}
	}
	key := len(q.Key)
	for _, part := range q.Parts {
		key += len(part)
	}
	for _, f := range []struct {
		name string
		size int
	}{{"key", key}, {"tenant", len(q.Tenant)}} {
		if f.size > maxKey {
			return &fieldError{f.name, fmt.Sprintf("has more than %d bytes: send a digest of it", maxKey)}
		}
	}
	return nil
}
