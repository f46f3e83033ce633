package http1

import (
	"bytes"

	"github.com/weir-dev/weir/internal/sidecar/proxy/framing"
)

// maxFields is how many fields may be kept room for.
const maxFields = 64

// A span is a part of a head.
type span struct{ from, to int }

func (s span) of(p []byte) []byte { return p[s.from:s.to] }

func (s span) in(text string) string { return text[s.from:s.to] }

// spanOf returns where a part of p is in p.
func spanOf(part, p []byte) span {
	if len(part) == 0 {
		return span{}
	}
	from := cap(p) - cap(part)
	return span{from, from + len(part)}
}

// A field is one line of a head.
type field struct {
	name, value span
	first       bool // of its name
}

// A head is the head of a request, as far as it has come.
type head struct {
	framing.Head
	fields         []field
	method, target span
	parsed         int  // bytes
	seen           int  // bytes without the end of a line
	begun          bool // the request line has come
	mayEmpty       bool // an empty line may come before it
	bounded        bool // in time
}

func (h *head) reset(mayEmpty bool) { *h = head{fields: h.fields[:0], mayEmpty: mayEmpty} }

// parse reads further in p, which begins with the head and has grown since the last call. It
// returns whether the head is complete, and why it is malformed, if it is.
func (h *head) parse(p []byte) (done bool, reason string) {
	for {
		end := bytes.IndexByte(p[h.seen:], '\n')
		if end < 0 {
			h.seen = len(p)
			return false, ""
		}
		end += h.seen
		line := p[h.parsed:end]
		h.parsed, h.seen = end+1, end+1
		if len(line) == 0 || line[len(line)-1] != '\r' {
			return false, "a line ends in a bare LF"
		}
		line = line[:len(line)-1]
		switch {
		case !h.begun:
			reason = h.request(line, p)
		case len(line) == 0:
			return true, h.End()
		default:
			reason = h.field(line, p)
		}
		if reason != "" {
			return false, reason
		}
	}
}

// request reads a request line. Old clients send an empty line behind the body of a POST.
func (h *head) request(line, p []byte) (reason string) {
	if h.mayEmpty && len(line) == 0 {
		h.mayEmpty = false
		return ""
	}
	method, target, reason := h.Request(line)
	h.begun, h.method, h.target = true, spanOf(method, p), spanOf(target, p)
	return reason
}

func (h *head) field(line, p []byte) (reason string) {
	name, value, reason := h.Field(line)
	if reason == "" {
		h.fields = append(h.fields, field{name: spanOf(name, p), value: spanOf(value, p)})
	}
	return reason
}

// canonicalize spells the name of a field as net/http does.
func canonicalize(name []byte) {
	upper := true
	for i, c := range name {
		switch {
		case upper && 'a' <= c && c <= 'z':
			name[i] = c - ('a' - 'A')
		case !upper && 'A' <= c && c <= 'Z':
			name[i] = c + ('a' - 'A')
		}
		upper = c == '-'
	}
}
