package check

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"unicode/utf8"

	"github.com/weir-dev/weir/pkg/limiter"
)

// Bounds of a request.
const (
	maxBody = 16 << 10
	maxName = 253  // bytes of policy and limit
	maxKey  = 1024 // bytes
)

// A Request asks one limit for units of cost.
type Request struct {
	Policy string // in the pod's namespace
	Limit  string
	Key    string // empty: the limit's single counter
	Cost   int64  // 1 when absent
}

// A fieldError says what is wrong with a field and what to send instead.
type fieldError struct{ field, problem string }

func (e *fieldError) Error() string { return fmt.Sprintf("field %q %s", e.field, e.problem) }

// parse reads a request: one JSON object whose names are known, appear once and
// hold what they should. A lenient reader would count the wrong thing in silence.
func parse(body []byte) (Request, error) {
	if !utf8.Valid(body) {
		return Request{}, errors.New("the body is not UTF-8")
	}
	req, seen := Request{Cost: 1}, make(map[string]bool)
	dec := json.NewDecoder(bytes.NewReader(body))
	if open, err := dec.Token(); err != nil || open != json.Delim('{') {
		return Request{}, errors.New(`the body is not a JSON object: send {"policy": "...", "limit": "...", "key": "...", "cost": 1}`)
	}
	for dec.More() {
		name, err := dec.Token()
		if err != nil {
			return Request{}, fmt.Errorf("the body is not valid JSON: %w", err)
		}
		field, _ := name.(string) // the decoder allows no other token here
		if seen[field] {
			return Request{}, &fieldError{field, "appears twice: send it once"}
		}
		seen[field] = true
		if err := req.read(field, dec); err != nil {
			return Request{}, err
		}
	}
	if _, err := dec.Token(); err != nil {
		return Request{}, fmt.Errorf("the body is not valid JSON: %w", err)
	}
	if _, err := dec.Token(); !errors.Is(err, io.EOF) {
		return Request{}, errors.New("more data follows the JSON object: send one object")
	}
	return req, req.validate()
}

// read reads the value of a field.
func (r *Request) read(field string, dec *json.Decoder) error {
	switch field {
	case "policy":
		return readString(dec, field, &r.Policy)
	case "limit":
		return readString(dec, field, &r.Limit)
	case "key":
		return readString(dec, field, &r.Key)
	case "cost":
		return readCost(dec, &r.Cost)
	default:
		return &fieldError{field, "is not known: send policy, limit, key and cost"}
	}
}

func readString(dec *json.Decoder, field string, to *string) error {
	value, err := dec.Token()
	if err != nil {
		return fmt.Errorf("the body is not valid JSON: %w", err)
	}
	text, ok := value.(string)
	if !ok {
		return &fieldError{field, "is not a string: put it in quotes"}
	}
	*to = text
	return nil
}

func readCost(dec *json.Decoder, to *int64) error {
	var raw json.RawMessage
	if err := dec.Decode(&raw); err != nil {
		return fmt.Errorf("the body is not valid JSON: %w", err)
	}
	// null would leave the cost as it was.
	if string(raw) == "null" || json.Unmarshal(raw, to) != nil || *to < 1 || *to > limiter.MaxLimit {
		return &fieldError{"cost", fmt.Sprintf("is not a whole number from 1 to %d", limiter.MaxLimit)}
	}
	return nil
}

func (r *Request) validate() error {
	for _, f := range []struct{ name, value string }{{"policy", r.Policy}, {"limit", r.Limit}} {
		switch {
		case f.value == "":
			return &fieldError{f.name, "is missing: name the " + f.name}
		case len(f.value) > maxName:
			return &fieldError{f.name, fmt.Sprintf("has more than %d bytes", maxName)}
		}
	}
	if len(r.Key) > maxKey {
		return &fieldError{"key", fmt.Sprintf("has more than %d bytes: send a digest of it", maxKey)}
	}
	return nil
}
