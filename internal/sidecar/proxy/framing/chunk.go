package framing

import (
	"bytes"
	"math"
)

// ParseChunk reads the line in front of a chunk: its size in hexadecimal and extensions,
// which have no reader and still have to be well-formed. White space behind a size without
// extensions is what servers that pad sizes send, and net/http trims it. Between a size
// and extensions net/http takes it for an error, and so it is one.
func ParseChunk(line []byte) (size uint64, reason string) {
	i := 0
	for ; i < len(line); i++ {
		digit, ok := hexadecimal(line[i])
		if !ok {
			break
		}
		if size = size<<4 | digit; size > math.MaxInt64/16 {
			return 0, "the size of a chunk is too large"
		}
	}
	if i == 0 || i > 16 {
		return 0, "the size of a chunk is not a number"
	}
	rest := line[i:]
	if len(bytes.TrimRight(rest, " \t")) == 0 {
		return size, ""
	}
	for len(rest) > 0 {
		var ok bool
		if rest, ok = cutExtension(rest); !ok {
			return 0, "the extension of a chunk is malformed"
		}
	}
	return size, ""
}

func hexadecimal(c byte) (digit uint64, ok bool) {
	switch {
	case '0' <= c && c <= '9':
		return uint64(c - '0'), true
	case 'a' <= c|0x20 && c|0x20 <= 'f':
		return uint64(c|0x20-'a') + 10, true
	}
	return 0, false
}

// cutExtension cuts one extension off: ";" name [ "=" value ]. The white space that the
// grammar lets recipients forgive is for no sender to send.
func cutExtension(p []byte) (rest []byte, ok bool) {
	name, ok := bytes.CutPrefix(p, []byte(";"))
	if !ok {
		return nil, false
	}
	if rest, ok = cutToken(name); !ok {
		return nil, false
	}
	value, ok := bytes.CutPrefix(rest, []byte("="))
	if !ok {
		return rest, true
	}
	if bytes.HasPrefix(value, []byte(`"`)) {
		return cutQuoted(value)
	}
	return cutToken(value)
}

func cutToken(p []byte) (rest []byte, ok bool) {
	n := 0
	for n < len(p) && tchar[p[n]] {
		n++
	}
	return p[n:], n > 0
}

// cutQuoted cuts a quoted string off. A backslash escapes the character behind it.
func cutQuoted(p []byte) (rest []byte, ok bool) {
	for i := 1; i < len(p); i++ {
		switch c := p[i]; {
		case c == '"':
			return p[i+1:], true
		case c < ' ' && c != '\t' || c == 0x7f:
			return nil, false
		case c == '\\':
			if i++; i == len(p) || p[i] < ' ' && p[i] != '\t' || p[i] == 0x7f {
				return nil, false
			}
		}
	}
	return nil, false
}
