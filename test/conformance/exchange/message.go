package exchange

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"

	"github.com/weir-dev/weir/internal/sidecar/proxy/framing/framingtest"
)

// A Message is what one side has read of a request or an answer.
type Message struct {
	Start   string // the first line
	Fields  []framingtest.Field
	Body    []byte
	Trailer []framingtest.Field
	State   State
}

// A State is how far a message was read.
type State uint8

// The states.
const (
	InBody   State = iota // its head was read
	Complete              // all of it was
	Cut                   // the connection ended in its body
	Broken                // its body cannot be read
)

// String returns the name of a state.
func (s State) String() string {
	return [...]string{"in the body", "complete", "cut", "broken"}[s]
}

// values returns the values of the fields of that name.
func (m *Message) values(name string) []string {
	all := framingtest.Message{Fields: m.Fields}
	return all.Values(name)
}

// word returns a word of the first line, empty when there are fewer.
func (m *Message) word(i int) string {
	if words := strings.SplitN(m.Start, " ", 3); i < len(words) {
		return words[i]
	}
	return ""
}

// status returns the status of an answer.
func (m *Message) status() int {
	n, _ := strconv.Atoi(m.word(1))
	return n
}

// A reader reads messages strictly.
type reader struct {
	in   *bufio.Reader
	note func(func()) // runs what changes a message that others look at
}

var errMalformed = errors.New("it is malformed")

func (r reader) line() (string, error) {
	line, err := r.in.ReadString('\n')
	if err != nil {
		if line != "" && errors.Is(err, io.EOF) {
			err = io.ErrUnexpectedEOF
		}
		return "", err
	}
	content, ok := strings.CutSuffix(line, "\r\n")
	if !ok || strings.ContainsAny(content, "\r\x00") {
		return "", fmt.Errorf("the line %q: %w", line, errMalformed)
	}
	return content, nil
}

// head reads the first line and the fields.
func (r reader) head() (m *Message, err error) {
	m = new(Message)
	if m.Start, err = r.line(); err != nil {
		return nil, err
	}
	m.Fields, err = r.fields()
	return m, err
}

func (r reader) fields() (all []framingtest.Field, err error) {
	for {
		line, err := r.line()
		if err != nil || line == "" {
			return all, err
		}
		name, value, ok := strings.Cut(line, ":")
		if !ok || name == "" || strings.ContainsAny(name, " \t") {
			return all, fmt.Errorf("the field %q: %w", line, errMalformed)
		}
		all = append(all, framingtest.Field{Name: name, Value: strings.Trim(value, " \t")})
	}
}

// framingOf returns how the body of a message is framed, and its length. The method is that of the
// request that an answer is for, and empty of a request.
func framingOf(m *Message, method string) (f framing, length int, err error) {
	codings, lengths := m.values("Transfer-Encoding"), m.values("Content-Length")
	if method != "" && bodyless(method, m.status()) {
		return unframed, 0, nil
	}
	switch {
	case len(codings)+len(lengths) > 1:
		return unframed, 0, fmt.Errorf("codings %q and lengths %q: %w", codings, lengths, errMalformed)
	case len(codings) == 1 && strings.EqualFold(codings[0], "chunked"):
		return byChunks, 0, nil
	case len(codings) == 1:
		return unframed, 0, fmt.Errorf("the coding %q: %w", codings, errMalformed)
	case len(lengths) == 1:
		length, err = strconv.Atoi(lengths[0])
		return byLength, length, err
	case method != "":
		return byClose, 0, nil
	default:
		return unframed, 0, nil
	}
}

// bodyless reports whether an answer of that status has none.
func bodyless(method string, status int) bool {
	return method == http.MethodHead || status < http.StatusOK || status == http.StatusNoContent || status == http.StatusNotModified
}

// body reads what follows a head, and notes how it ended.
func (r reader) body(m *Message, method string) error {
	f, length, err := framingOf(m, method)
	if err == nil {
		switch f {
		case byLength:
			err = r.data(m, length)
		case byChunks:
			err = r.chunks(m)
		case byClose:
			if _, err = r.copy(m, 1<<40); errors.Is(err, io.EOF) {
				err = nil
			}
		case unframed:
		}
	}
	r.note(func() {
		switch {
		case err == nil:
			m.State = Complete
		case errors.Is(err, errMalformed):
			m.State = Broken
		default:
			m.State = Cut
		}
	})
	return err
}

// data reads that many bytes of a body.
func (r reader) data(m *Message, length int) error {
	n, err := r.copy(m, length)
	if n < length {
		return fmt.Errorf("%d of %d bytes came: %w", n, length, err)
	}
	return nil
}

func (r reader) copy(m *Message, most int) (n int, err error) {
	buffer := make([]byte, 8<<10)
	for n < most {
		got, err := r.in.Read(buffer[:min(len(buffer), most-n)])
		n += got
		r.note(func() { m.Body = append(m.Body, buffer[:got]...) })
		if err != nil {
			return n, err
		}
	}
	return n, nil
}

func (r reader) chunks(m *Message) error {
	for {
		line, err := r.line()
		if err != nil {
			return err
		}
		digits, _, _ := strings.Cut(line, ";")
		length, err := strconv.ParseUint(digits, 16, 31)
		if err != nil {
			return fmt.Errorf("the size %q: %w", line, errMalformed)
		}
		if length == 0 {
			trailer, err := r.fields()
			r.note(func() { m.Trailer = trailer })
			return err
		}
		if err := r.data(m, int(length)); err != nil {
			return err
		}
		switch end, err := r.line(); {
		case err != nil:
			return err
		case end != "":
			return fmt.Errorf("%q behind a chunk: %w", end, errMalformed)
		}
	}
}
