package framingtest

import (
	"bytes"
	"net/netip"
	"regexp"
	"strconv"
	"strings"
)

// A Message is a request as it was read.
type Message struct {
	Method, Target, Version string
	Fields                  []Field
	Body                    string // without its chunks
	Trailer                 []Field

	HeadBytes, ChunkLineBytes, TrailerBytes int // of the head, of the longest line in front of a chunk, of the trailer
}

// A Field is one line of a header.
type Field struct{ Name, Value string }

// Values returns the values of the fields of that name.
func (m *Message) Values(name string) (values []string) {
	for _, f := range m.Fields {
		if strings.EqualFold(f.Name, name) {
			values = append(values, f.Value)
		}
	}
	return values
}

// IsForwarded reports whether m is what a proxy forwards of sent: it has the
// same method, target in origin form, and body.
func (m *Message) IsForwarded(sent *Message) bool {
	target := sent.Target
	if scheme, rest, absolute := strings.Cut(target, "://"); absolute && !strings.HasPrefix(scheme, "/") {
		target = "/"
		if i := strings.IndexAny(rest, "/?"); i >= 0 {
			target = "/" + strings.TrimPrefix(rest[i:], "/")
		}
	}
	return m.Method == sent.Method && m.Target == target && m.Body == sent.Body
}

// Last reports whether no request may follow m on its connection.
func (m *Message) Last() bool {
	return m.Version == "HTTP/1.0" || m.option("close")
}

func (m *Message) option(name string) bool {
	for _, o := range m.options() {
		if strings.EqualFold(o, name) {
			return true
		}
	}
	return false
}

func (m *Message) options() (options []string) {
	for _, value := range m.Values("Connection") {
		for o := range strings.SplitSeq(value, ",") {
			if o = strings.Trim(o, " \t"); o != "" {
				options = append(options, o)
			}
		}
	}
	return options
}

// A Verdict says what is to be thought of the beginning of a stream.
type Verdict uint8

// The verdicts.
const (
	Complete   Verdict = iota // a request
	Incomplete                // what may become one
	Malformed                 // what never does
)

const (
	token = "[!#$%&'*+.^_`|~0-9A-Za-z-]+"
	value = `[^\x00-\x08\x0a-\x1f\x7f]*`
	field = token + `:` + value + `\r\n`
	// The parts of URIs, with the characters in them that the URL Standard leaves as they
	// are: [ ] ^ | { } and the grave accent, and a backslash and any % in a query. Some
	// clients write a target as it was typed: bytes beyond ASCII, and in a query " < and >.
	// None of these ends a word or a line for anybody.
	path    = "(?:/(?:[A-Za-z0-9._~!$&'()*+,;=:@/\\[\\]^|{}`-]|[^\\x00-\\x7f]|%[0-9A-Fa-f]{2})*)"
	query   = "(?:\\?(?:[A-Za-z0-9._~!$&'()*+,;=:@/?\\[\\]^|{}`%\\\\\"<>-]|[^\\x00-\\x7f])*)?"
	name    = "(?:[A-Za-z0-9._~!$&'()*+,;=-]|%[0-9A-Fa-f]{2})"
	address = `\[[0-9A-Fa-f:.]+\]` // a closer look is netip's
	port    = `(?::[0-9]*)?`
	quoted  = `"(?:[^\x00-\x08\x0a-\x1f\x7f"\\]|\\[^\x00-\x08\x0a-\x1f\x7f])*"`
	// Extensions are without bad white space; behind a size that has none, some pad.
	extension = `;` + token + `(?:=(?:` + token + `|` + quoted + `))?`
)

// The methods that have targets of their own, and the one that an empty line may follow.
const (
	connect = "CONNECT"
	options = "OPTIONS"
	post    = "POST"
)

var (
	requestLine = regexp.MustCompile(`\A(` + token + `) ([^\x00-\x20\x7f]+) (HTTP/1\.[01])\r\n\z`)
	fieldLine   = regexp.MustCompile(`\A` + field + `\z`)
	originForm  = regexp.MustCompile(`\A` + path + query + `\z`)
	absolute    = regexp.MustCompile(`\A(?i:https?)://((?:` + address + `|` + name + `+)` + port + `)` + path + `?` + query + `\z`)
	authority   = regexp.MustCompile(`\A(?:(` + address + `)|` + name + `*)` + port + `\z`)
	digits      = regexp.MustCompile(`\A[0-9]{1,18}\z`)
	chunkLine   = regexp.MustCompile(`\A([0-9A-Fa-f]{1,15})(?:[ \t]*|(?:` + extension + `)*)\r\n\z`)
	// ofConnection are the fields that a Connection may name.
	ofConnection = regexp.MustCompile(`\A(?i:close|keep-alive|upgrade|te|trailer|http2-settings|transfer-encoding|proxy-connection|proxy-authenticate|proxy-authorization)\z`)
	// notInTrailers are the fields that would change what was read already.
	notInTrailers = regexp.MustCompile(`\A(?i:content-length|transfer-encoding|host|trailer)\z`)
)

// Read reads one request from the beginning of stream.
func Read(stream []byte) (m Message, rest []byte, v Verdict) {
	lines, rest, v := readLines(stream)
	if len(lines) == 0 {
		return m, stream, v
	}
	parts := requestLine.FindSubmatch(lines[0])
	if parts == nil {
		return m, stream, Malformed
	}
	m = Message{Method: string(parts[1]), Target: string(parts[2]), Version: string(parts[3]), HeadBytes: len(stream) - len(rest)}
	for _, line := range lines[1:] {
		f, ok := readField(line)
		if !ok {
			return m, stream, Malformed
		}
		m.Fields = append(m.Fields, f)
	}
	if v != Complete {
		return m, stream, v
	}
	if !m.wellAddressed() || !m.wellConnected() {
		return m, stream, Malformed
	}
	return m.readBody(stream, rest)
}

// readLines splits a head, whose empty line is left out. The lines before it breaks off
// are returned.
func readLines(stream []byte) (lines [][]byte, rest []byte, v Verdict) {
	for rest = stream; ; {
		end := bytes.IndexByte(rest, '\n')
		if end < 0 {
			return lines, rest, Incomplete
		}
		line := rest[:end+1]
		rest = rest[end+1:]
		if string(line) == "\r\n" && len(lines) > 0 {
			return lines, rest, Complete
		}
		lines = append(lines, line)
	}
}

func readField(line []byte) (Field, bool) {
	if !fieldLine.Match(line) {
		return Field{}, false
	}
	name, rest, _ := strings.Cut(string(line), ":")
	return Field{name, strings.Trim(rest, " \t\r\n")}, true
}

func (m *Message) wellAddressed() bool {
	hosts := m.Values("Host")
	if len(hosts) > 1 || len(hosts) == 0 && m.Version == "HTTP/1.1" || len(hosts) == 1 && !isAuthority(hosts[0]) {
		return false
	}
	if m.Method == connect {
		return isAuthority(m.Target)
	}
	if parts := absolute.FindStringSubmatch(m.Target); parts != nil {
		return isAuthority(parts[1])
	}
	return originForm.MatchString(m.Target) || m.Method == options && m.Target == "*"
}

func isAuthority(s string) bool {
	parts := authority.FindStringSubmatch(s)
	if parts == nil || parts[1] == "" {
		return parts != nil
	}
	_, err := netip.ParseAddr(strings.Trim(parts[1], "[]"))
	return err == nil && strings.Contains(parts[1], ":")
}

func (m *Message) wellConnected() bool {
	for _, o := range m.options() {
		if !ofConnection.MatchString(o) && len(m.Values(o)) > 0 {
			return false
		}
	}
	return true
}

func (m *Message) readBody(stream, rest []byte) (Message, []byte, Verdict) {
	lengths, codings := m.Values("Content-Length"), m.Values("Transfer-Encoding")
	switch {
	case len(lengths) == 0 && len(codings) == 0:
		return *m, rest, Complete
	case len(lengths)+len(codings) > 1:
		return *m, stream, Malformed
	case len(codings) == 1:
		if m.Version == "HTTP/1.0" || !strings.EqualFold(codings[0], "chunked") {
			return *m, stream, Malformed
		}
		return m.readChunks(stream, rest)
	case !digits.MatchString(lengths[0]):
		return *m, stream, Malformed
	}
	n, err := strconv.Atoi(lengths[0])
	if err != nil || len(rest) < n {
		return *m, stream, Incomplete
	}
	m.Body = string(rest[:n])
	return *m, rest[n:], Complete
}

func (m *Message) readChunks(stream, rest []byte) (Message, []byte, Verdict) {
	for {
		end := bytes.IndexByte(rest, '\n')
		if end < 0 {
			return *m, stream, Incomplete
		}
		parts := chunkLine.FindSubmatch(rest[:end+1])
		if parts == nil {
			return *m, stream, Malformed
		}
		m.ChunkLineBytes = max(m.ChunkLineBytes, end+1)
		rest = rest[end+1:]
		size, err := strconv.ParseInt(string(parts[1]), 16, 64)
		switch {
		case err != nil:
			return *m, stream, Malformed
		case size == 0:
			return m.readTrailer(stream, rest)
		case int64(len(rest)) < size+2:
			return *m, stream, Incomplete
		case string(rest[size:size+2]) != "\r\n":
			return *m, stream, Malformed
		}
		m.Body += string(rest[:size])
		rest = rest[size+2:]
	}
}

func (m *Message) readTrailer(stream, rest []byte) (Message, []byte, Verdict) {
	begin := len(rest)
	for {
		end := bytes.IndexByte(rest, '\n')
		if end < 0 {
			return *m, stream, Incomplete
		}
		line := rest[:end+1]
		rest = rest[end+1:]
		if string(line) == "\r\n" {
			m.TrailerBytes = begin - len(rest)
			return *m, rest, Complete
		}
		f, ok := readField(line)
		if !ok || notInTrailers.MatchString(f.Name) {
			return *m, stream, Malformed
		}
		m.Trailer = append(m.Trailer, f)
	}
}

// Skip skips the empty line that old clients send behind the body of a POST. Section 2.2
// has servers ignore one in front of any request line, which none has to send.
func (m *Message) Skip(rest []byte) []byte {
	if m.Method == post {
		return bytes.TrimPrefix(rest, []byte("\r\n"))
	}
	return rest
}

// ReadAll reads the requests of a stream one after another, up to the last of its
// connection. The verdict is about what follows them: Complete says that nothing does.
func ReadAll(stream []byte) (all []Message, v Verdict) {
	for rest := stream; len(rest) > 0; {
		m, next, v := Read(rest)
		if v != Complete {
			return all, v
		}
		all = append(all, m)
		if m.Last() {
			return all, Complete
		}
		rest = m.Skip(next)
	}
	return all, Complete
}
