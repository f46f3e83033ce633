package http1

import (
	"bytes"
	"errors"
	"net/http"
	"strconv"

	"github.com/weir-dev/weir/internal/sidecar/proxy/framing"
)

// An answerHead is the head of an answer of the app's, which is in the buffer of its connection. It
// is as lenient with the ends of lines as net/http. It implements exchange.Fields.
type answerHead struct {
	raw     []byte
	fields  []field
	phrase  span
	status  int
	version byte  // the last digit of it
	length  int64 // -1: none is announced
	chunked bool
	closes  bool        // the connection, behind it
	options []span      // values of Connection
	header  http.Header // nil until it is asked for
}

var errAnswer = errors.New("the app's answer is malformed")

// readAnswer reads the head of an answer. Its body follows in the buffer.
func (t *transfer) readAnswer(l *link) (*answerHead, error) {
	a := &t.head
	seen := 0
	for {
		p := l.in.bytes()
		if end := headEnd(p, seen); end > 0 {
			*a = answerHead{raw: p[:end], fields: a.fields[:0], options: a.options[:0], length: -1}
			l.in.skip(end)
			return a, a.parse()
		}
		seen = max(0, len(p)-len("\r\n\n"))
		if err := t.more(l, maxAnswerHead); err != nil {
			return nil, err
		}
	}
}

// headEnd returns where a head ends that begins p, or 0. The first bytes have no end.
func headEnd(p []byte, seen int) int {
	for {
		end := bytes.IndexByte(p[seen:], '\n')
		if end < 0 {
			return 0
		}
		seen += end + 1
		switch rest := p[seen:]; {
		case len(rest) > 0 && rest[0] == '\n':
			return seen + 1
		case len(rest) > 1 && rest[0] == '\r' && rest[1] == '\n':
			return seen + 2
		}
	}
}

func (a *answerHead) parse() error {
	rest := a.raw
	line, rest, _ := bytes.Cut(rest, []byte("\n"))
	if !a.statusLine(bytes.TrimSuffix(line, []byte("\r"))) {
		return errAnswer
	}
	for len(rest) > 0 {
		line, rest, _ = bytes.Cut(rest, []byte("\n"))
		if line = bytes.TrimSuffix(line, []byte("\r")); len(line) == 0 {
			break
		}
		if folds := line[0] == ' ' || line[0] == '\t'; folds && !a.fold(line) || !folds && !a.field(line) {
			return errAnswer
		}
	}
	if a.chunked {
		a.length = -1
	}
	return nil
}

// statusLine reads "HTTP/1.1 200 OK". The phrase may be missing.
func (a *answerHead) statusLine(line []byte) bool {
	const version = "HTTP/1."
	if len(line) < len("HTTP/1.1 200") || string(line[:len(version)]) != version || line[8] != ' ' || line[7] < '0' || line[7] > '1' {
		return false
	}
	status, err := strconv.ParseUint(string(line[9:12]), 10, 16)
	if err != nil || status < 100 || len(line) > 12 && line[12] != ' ' || hasControls(line) {
		return false
	}
	a.status, a.version = int(status), line[7]
	a.closes = a.version == '0'
	if len(line) > 13 {
		a.phrase = spanOf(line[13:], a.raw)
	}
	return true
}

// hasControls reports whether a line has control characters, but for tabs.
func hasControls(line []byte) bool {
	for _, c := range line {
		if c < ' ' && c != '\t' || c == 0x7f {
			return true
		}
	}
	return false
}

func (a *answerHead) field(line []byte) bool {
	colon := bytes.IndexByte(line, ':')
	if colon <= 0 || hasControls(line) {
		return false
	}
	name, value := line[:colon], bytes.Trim(line[colon+1:], " \t")
	if !framing.IsToken(name) {
		return false
	}
	canonicalize(name)
	f := field{name: spanOf(name, a.raw), value: spanOf(value, a.raw)}
	switch string(name) {
	case "Content-Length":
		n, err := strconv.ParseUint(string(value), 10, 63)
		if err != nil || a.length >= 0 && a.length != int64(n) {
			return false
		}
		a.length = int64(n)
	case "Transfer-Encoding":
		if a.version == '0' {
			return true
		}
		if a.chunked || !bytes.EqualFold(value, []byte("chunked")) {
			return false
		}
		a.chunked = true
	case "Connection":
		a.options = append(a.options, f.value)
		a.closes = a.version == '0' && !hasOption(value, "keep-alive") || a.closes && a.version != '0' || hasOption(value, "close")
	}
	a.fields = append(a.fields, f)
	return true
}

// fold adds a line to the field that it continues.
func (a *answerHead) fold(line []byte) bool {
	if len(a.fields) == 0 || hasControls(line) {
		return false
	}
	more, value := spanOf(bytes.Trim(line, " \t"), a.raw), &a.fields[len(a.fields)-1].value
	switch {
	case more.from == more.to:
	case value.from == value.to:
		*value = more
	default:
		for i := value.to; i < more.from; i++ {
			a.raw[i] = ' '
		}
		value.to = more.to
	}
	return true
}

// hasOption reports whether a list has an option.
func hasOption(list []byte, option string) bool {
	for one := range bytes.SplitSeq(list, []byte(",")) {
		if one = bytes.Trim(one, " \t"); len(one) == len(option) && bytes.EqualFold(one, []byte(option)) {
			return true
		}
	}
	return false
}

// Get implements exchange.Fields.
func (a *answerHead) Get(name string) string {
	if a.header != nil {
		if values := a.header[http.CanonicalHeaderKey(name)]; len(values) > 0 {
			return values[0]
		}
		return ""
	}
	for _, f := range a.fields {
		if bytes.EqualFold(f.name.of(a.raw), []byte(name)) {
			return string(f.value.of(a.raw))
		}
	}
	return ""
}

// Header implements exchange.Fields.
func (a *answerHead) Header() http.Header {
	if a.header == nil {
		a.header = make(http.Header, len(a.fields))
		for _, f := range a.fields {
			name := string(f.name.of(a.raw))
			a.header[name] = append(a.header[name], string(f.value.of(a.raw)))
		}
	}
	return a.header
}
