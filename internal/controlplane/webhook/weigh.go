package webhook

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
)

const (
	maxQuantity       = 64    // characters; the longest in use has some 20
	maxExponentDigits = 3     // a quantity of Kubernetes is below 1e19 and above 1e-10
	maxNesting        = 10000 // that of the decoder
)

// errMalformed is no more precise than it has to be: the decoder refuses the same text.
var errMalformed = errors.New("it is not JSON")

// An excessError says where an object is beyond a bound on what decoding it may cost.
type excessError struct{ path, reason string }

func (e *excessError) Error() string { return strings.TrimPrefix(e.path, ".") + ": " + e.reason }

// weigh returns how many bytes of memory the lists, maps and optional parts take that a
// decoder makes of the JSON, in one pass and without decoding anything. Texts are not counted:
// they take no more than they are long.
//
// It returns an *excessError when they take more than most, or when a quantity is of a form
// that takes long to compute, such as 1e-9999999. By the shape it knows which texts are read
// as quantities, so none of an annotation, an argument or a variable is ever refused. It
// returns another error for what is not JSON, though not for all of that.
func weigh(text []byte, sh *shape, most int) (memory int, err error) {
	s := scan{text: text, most: most}
	if err := s.value(sh, 0); err != nil {
		return s.memory, err
	}
	if s.space(); s.at < len(text) {
		return s.memory, errMalformed
	}
	return s.memory, nil
}

// A scan is a pass over text.
type scan struct {
	text   []byte
	at     int
	memory int
	most   int
}

// next skips white space and returns what comes then, 0 at the end.
func (s *scan) next() byte {
	s.space()
	if s.at >= len(s.text) {
		return 0
	}
	return s.text[s.at]
}

func (s *scan) space() {
	for s.at < len(s.text) && bytes.IndexByte([]byte(" \t\r\n"), s.text[s.at]) >= 0 {
		s.at++
	}
}

// value passes over a value. The shape is nil for one that is not decoded.
func (s *scan) value(sh *shape, depth int) error {
	first, start := s.next(), s.at
	if depth > maxNesting {
		return errMalformed
	}
	for sh != nil && sh.to != nil {
		if err := s.add(sh.each); err != nil {
			return err
		}
		sh = sh.to
	}
	switch first {
	case 0:
		return errMalformed
	case '{':
		s.at++
		return s.object(sh, depth)
	case '[':
		s.at++
		return s.list(sh, depth)
	case '"':
		if err := s.string(); err != nil {
			return err
		}
	default:
		for s.at < len(s.text) && bytes.IndexByte([]byte(",]} \t\r\n"), s.text[s.at]) < 0 {
			s.at++
		}
		if s.at == start {
			return errMalformed
		}
	}
	if sh != nil && sh.quantity {
		return checkQuantity(bytes.Trim(s.text[start:s.at], `"`))
	}
	return nil
}

// object passes over the members of an object, or the entries of a map.
func (s *scan) object(sh *shape, depth int) error {
	for first := true; s.more('}', first); first = false {
		key, err := s.key()
		if err != nil {
			return err
		}
		var inner *shape
		switch {
		case sh == nil:
		case sh.elem != nil:
			inner, err = sh.elem, s.add(sh.each)
		default:
			inner = sh.named[string(key)]
		}
		if err == nil {
			err = s.value(inner, depth+1)
		}
		if err != nil {
			return within("."+string(key[:min(len(key), maxQuantity)]), err)
		}
	}
	return s.skip('}')
}

func (s *scan) list(sh *shape, depth int) error {
	i := 0
	for ; s.more(']', i == 0); i++ {
		var inner *shape
		var err error
		if sh != nil && sh.elem != nil {
			inner, err = sh.elem, s.add(sh.each)
		}
		if err == nil {
			err = s.value(inner, depth+1)
		}
		if err != nil {
			return within("["+strconv.Itoa(i)+"]", err)
		}
	}
	return s.skip(']')
}

// more reports whether another element comes, and passes over the comma before it.
func (s *scan) more(end byte, first bool) bool {
	if first {
		return s.next() != end
	}
	return s.skip(',') == nil
}

func (s *scan) skip(b byte) error {
	if s.next() != b {
		return errMalformed
	}
	s.at++
	return nil
}

// key passes over the name of a member and the colon behind it.
func (s *scan) key() ([]byte, error) {
	s.space()
	start := s.at
	if err := s.string(); err != nil {
		return nil, err
	}
	quoted := s.text[start:s.at]
	key := quoted[1 : len(quoted)-1]
	if bytes.IndexByte(key, '\\') >= 0 {
		var plain string
		if json.Unmarshal(quoted, &plain) != nil {
			return nil, errMalformed
		}
		key = []byte(plain)
	}
	return key, s.skip(':')
}

func (s *scan) string() error {
	if s.at >= len(s.text) || s.text[s.at] != '"' {
		return errMalformed
	}
	for s.at++; s.at < len(s.text); s.at++ {
		switch s.text[s.at] {
		case '"':
			s.at++
			return nil
		case '\\':
			s.at++
		}
	}
	return errMalformed
}

func (s *scan) add(bytes int) error {
	if s.memory += bytes; s.memory > s.most {
		return &excessError{reason: fmt.Sprintf("with the lists before it this takes more than %d bytes of memory to read: make them shorter", s.most)}
	}
	return nil
}

func checkQuantity(text []byte) error {
	exponent := 0
	if e := bytes.IndexAny(text, "eE"); e >= 0 {
		exponent = len(bytes.TrimLeft(text[e+1:], "+-i"))
	}
	if len(text) > maxQuantity || exponent > maxExponentDigits {
		return &excessError{reason: fmt.Sprintf("a quantity has up to %d characters, and an exponent up to %d digits: write it with a suffix such as m or Mi",
			maxQuantity, maxExponentDigits)}
	}
	return nil
}

// within says of an excess where it is.
func within(place string, err error) error {
	if excess, ok := errors.AsType[*excessError](err); ok {
		return &excessError{path: place + excess.path, reason: excess.reason}
	}
	return err
}
