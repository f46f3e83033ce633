package framing

import (
	"bytes"
	"math"
)

// A Head is what the head of a request says of how the message is framed. Its methods are called
// with one line after another, without their ends, and return why it is malformed, if it is.
type Head struct {
	Post    bool
	HTTP10  bool
	Chunked bool
	Length  uint64 // of the body; 0 where it is chunked

	hosts   int
	lengths int
	codings int
}

// Request checks a request line. The syntax of a target is left to its readers, as long
// as it is one word without control characters.
func (h *Head) Request(line []byte) (method, target []byte, reason string) {
	method, rest, _ := bytes.Cut(line, []byte(" "))
	target, version, _ := bytes.Cut(rest, []byte(" "))
	h.Post = string(method) == "POST"
	switch {
	case !IsToken(method):
		return nil, nil, "the method is not a token"
	case !isWord(target):
		return nil, nil, "the target is empty or has control characters"
	case string(version) == "HTTP/1.0":
		h.HTTP10 = true
	case string(version) != "HTTP/1.1":
		return nil, nil, "the version is neither HTTP/1.1 nor HTTP/1.0"
	}
	return method, target, ""
}

// isWord reports whether word is one without white space and other control characters.
// Bytes beyond ASCII are those of a target that its client did not escape.
func isWord(word []byte) bool {
	for _, c := range word {
		if c <= ' ' || c == 0x7f {
			return false
		}
	}
	return len(word) > 0
}

// Field checks a field line.
func (h *Head) Field(line []byte) (name, value []byte, reason string) {
	if name, value, reason = splitField(line); reason == "" {
		reason = h.keep(name, value)
	}
	return name, value, reason
}

// keep keeps what says how the message is framed.
func (h *Head) keep(name, value []byte) (reason string) {
	switch len(name) {
	case len("Host"):
		if bytes.EqualFold(name, []byte("Host")) {
			h.hosts++
			if !IsAuthority(string(value)) {
				return "Host is not a name or an address"
			}
		}
	case len("Content-Length"):
		if bytes.EqualFold(name, []byte("Content-Length")) {
			h.lengths++
			return h.contentLength(value)
		}
	case len("Transfer-Encoding"):
		if bytes.EqualFold(name, []byte("Transfer-Encoding")) {
			h.codings++
			if h.Chunked = bytes.EqualFold(value, []byte("chunked")); !h.Chunked {
				return "the transfer coding is not chunked"
			}
		}
	}
	return ""
}

func (h *Head) contentLength(value []byte) (reason string) {
	if len(value) == 0 {
		return "Content-Length is empty"
	}
	for _, c := range value {
		if c < '0' || c > '9' {
			return "Content-Length is not a number"
		}
		if h.Length = h.Length*10 + uint64(c-'0'); h.Length > math.MaxInt64/16 {
			return "Content-Length is too large"
		}
	}
	return ""
}

// End checks what the fields together leave open.
func (h *Head) End() (reason string) {
	switch {
	case h.hosts > 1, h.hosts == 0 && !h.HTTP10:
		return "there is not one Host"
	case h.lengths > 1:
		return "there is more than one Content-Length"
	case h.codings > 1:
		return "there is more than one Transfer-Encoding"
	case h.codings > 0 && h.lengths > 0:
		return "there are both Transfer-Encoding and Content-Length"
	case h.codings > 0 && h.HTTP10:
		return "HTTP/1.0 has no Transfer-Encoding"
	}
	return ""
}

// splitField splits a field line. Between the name and the colon there is nothing, and a
// line that continues another one begins with space, which no name does.
func splitField(line []byte) (name, value []byte, reason string) {
	colon := bytes.IndexByte(line, ':')
	if colon < 0 || !IsToken(line[:colon]) {
		return nil, nil, "the name of a field is not a token"
	}
	for _, c := range line[colon+1:] {
		if c < ' ' && c != '\t' || c == 0x7f {
			return nil, nil, "the value of a field has a control character"
		}
	}
	return line[:colon], bytes.Trim(line[colon+1:], " \t"), ""
}

// tchar are the characters of a token; see RFC 9110, section 5.6.2.
var tchar = func() (set [256]bool) {
	for _, c := range []byte("!#$%&'*+-.^_`|~0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ") {
		set[c] = true
	}
	return set
}()

// IsToken reports whether a word is a token; see RFC 9110, section 5.6.2.
func IsToken(word []byte) bool {
	rest, ok := cutToken(word)
	return ok && len(rest) == 0
}
