package framing

import (
	"bytes"
	"strings"
)

// An Error says how a connection is malformed.
type Error struct{ Reason string }

// Error names the reason.
func (e *Error) Error() string { return "malformed HTTP/1.1: " + e.Reason }

// Preface is what HTTP/2 with prior knowledge begins with.
const Preface = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"

// maxLine bounds what is kept of a line until its end comes. The parser behind us gives
// up earlier.
const maxLine = 64 << 10

// A part is what the next line belongs to.
type part uint8

const (
	opening part = iota // of the connection, up to where it differs from the preface
	requestLine
	headerField
	chunkSize
	chunkEnd // the empty line behind a chunk's data
	trailerField
	otherProtocol // HTTP/2, to the end
)

// A scanner follows a connection line by line, and skips the bodies between them.
type scanner struct {
	next    part
	matched int    // bytes of the preface
	partial []byte // of a line whose end did not come yet
	skip    uint64 // bytes of a body that are left
	heads   uint64 // that have ended
	head    Head
}

// scan checks what comes next. It returns how much of p may be handed on: all, or what comes
// before the malformed line.
func (s *scanner) scan(p []byte) (good int, err error) {
	rest := p
	if s.next == opening {
		if rest, err = s.open(p); err != nil {
			return 0, err
		}
	}
	for len(rest) > 0 && s.next != otherProtocol {
		if s.skip > 0 {
			n := min(s.skip, uint64(len(rest)))
			s.skip -= n
			rest = rest[n:]
			continue
		}
		line, _, ended := bytes.Cut(rest, []byte("\n"))
		if len(s.partial)+len(line) >= maxLine {
			return len(p) - len(rest), &Error{"a line is too long"}
		}
		if !ended {
			s.partial = append(s.partial, rest...)
			break
		}
		line = rest[:len(line)+1]
		following := rest[len(line):]
		if len(s.partial) > 0 {
			line = append(s.partial, line...)
			s.partial = nil // connections are many and mostly idle
		}
		if reason := s.line(line); reason != "" {
			return len(p) - len(rest), &Error{reason}
		}
		rest = following
	}
	return len(p), nil
}

// inHead reports whether what comes next is part of a head.
func (s *scanner) inHead() bool { return s.next == requestLine || s.next == headerField }

// atBoundary reports whether a message has ended and nothing of the next one has come.
func (s *scanner) atBoundary() bool {
	return s.next == requestLine && s.skip == 0 && len(s.partial) == 0
}

// betweenBodies reports whether every message whose head has ended is complete.
func (s *scanner) betweenBodies() bool { return s.inHead() && s.skip == 0 }

// open compares with the preface. A stream that began like it and goes on differently
// is checked from its beginning.
func (s *scanner) open(p []byte) (rest []byte, err error) {
	for i, c := range p {
		if c != Preface[s.matched] {
			s.next = requestLine
			_, err = s.scan([]byte(Preface[:s.matched]))
			return p[i:], err
		}
		if s.matched++; s.matched == len(Preface) {
			s.next = otherProtocol
			return nil, nil
		}
	}
	return nil, nil
}

// line checks a line, which ends in LF, and returns why it is malformed, if it is.
func (s *scanner) line(line []byte) (reason string) {
	content, ok := bytes.CutSuffix(line, []byte("\r\n"))
	if !ok {
		return "a line ends in a bare LF"
	}
	switch s.next {
	case requestLine:
		afterPost := s.head.Post
		s.head = Head{}
		if afterPost && len(content) == 0 {
			return "" // old clients send one; net/http forgives it here and nowhere else
		}
		s.next = headerField
		_, _, reason = s.head.Request(content)
		return reason
	case headerField:
		if len(content) > 0 {
			_, _, reason = s.head.Field(content)
			return reason
		}
		return s.endHead()
	case chunkSize:
		size, reason := ParseChunk(content)
		if s.next = trailerField; size > 0 {
			s.skip, s.next = size, chunkEnd
		}
		return reason
	case chunkEnd:
		if len(content) > 0 {
			return "a chunk is longer than its size"
		}
		s.next = chunkSize
	default: // trailerField
		if len(content) > 0 {
			_, _, reason = Trailer(content)
			return reason
		}
		s.next = requestLine
	}
	return ""
}

// endHead goes on to what the head says that follows it.
func (s *scanner) endHead() (reason string) {
	if reason := s.head.End(); reason != "" {
		return reason
	}
	s.heads++
	s.next = requestLine
	if s.head.Chunked {
		s.next = chunkSize
	}
	s.skip = s.head.Length
	return ""
}

// Trailer checks a field behind the last chunk. Those that frame a message or address it
// may be merged into a header by a later reader, so they may not stand in a trailer.
func Trailer(line []byte) (name, value []byte, reason string) {
	name, value, reason = splitField(line)
	for _, banned := range notTrailers {
		if strings.EqualFold(string(name), banned) {
			return nil, nil, "a trailer has " + banned
		}
	}
	return name, value, reason
}

var notTrailers = []string{"Content-Length", "Transfer-Encoding", "Host", "Trailer"}
