package exchange

import (
	"fmt"
	"strings"

	"github.com/weir-dev/weir/internal/sidecar/proxy/framing/framingtest"
)

// A Plan is one exchange. The same seed draws the same plan.
type Plan struct {
	Seed     uint64
	requests []request
	end      ending // of the client, at the last request
}

// A framing says how the end of a body is known.
type framing uint8

const (
	unframed framing = iota // no body
	byLength
	byChunks
	byClose // the body of an answer that the end of the connection ends
)

// A request and its answer.
type request struct {
	method, target, version string // the target has a place for where the request belongs
	fields                  []framingtest.Field
	framing                 framing
	parts                   []string // of the body, chunks if it has some
	extension               string   // of each chunk
	trailer                 []framingtest.Field
	expects                 bool // 100-continue, and waits for it
	pipelined               bool // sent without waiting for the answer before it
	writes                  []int
	looks                   []int // where the client waits until the app has all that was sent
	answer                  answer
}

// A start says when the app answers.
type start uint8

const (
	atEnd   start = iota // of the request
	early                // the answer begins in the request's body, and ends behind it
	hastily              // all of it is sent in the request's body
	atLeave              // when the client has left
)

type answer struct {
	start   start
	behind  int // bytes of the request's body, when it is early
	interim []interim
	status  int
	phrase  string
	fields  []framingtest.Field
	framing framing
	parts   []string
	trailer []framingtest.Field
	writes  []int
	looks   bool // the app waits for the client to have each part
	end     appEnd
	// bodyless says that nothing follows the head, whatever that says: of HEAD, 204 and 304.
	bodyless bool
}

type interim struct {
	status int
	fields []framingtest.Field
}

// An appEnd is how the app goes on behind an answer, or instead of one.
type appEnd uint8

const (
	keeps        appEnd = iota // the connection
	closes                     // it, and says so
	closesMutely               // it, without a word
	silent                     // it ends the connection without an answer
	cutHead                    // in the head
	cutBody                    // in the body
)

// A leave is how the client ends the connection.
type leave uint8

const (
	stays      leave = iota // until it has all answers
	closesSide              // for writing, and reads on
	leaves                  // it closes the connection
	aborts                  // it resets the connection
)

// An ending is where the client ends the connection.
type ending struct {
	how    leave
	at     int // bytes of the last request that were sent
	answer int // bytes of the body of its answer that were received; -1: it does not wait for one
}

// head returns the head of a request. Where the app finds the plan is a part of the target.
func (r *request) head(token string, i int) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s %s %s\r\n", r.method, strings.Replace(r.target, place, fmt.Sprintf("/%s/%d", token, i), 1), r.version)
	writeFields(&b, r.fields)
	b.WriteString("\r\n")
	return b.String()
}

// place stands in a target for what names its exchange and its number.
const place = "/@"

// wire returns all of a request, and the length of its head.
func (r *request) wire(token string, i int) (data string, head int) {
	first := r.head(token, i)
	return first + body(r.framing, r.parts, r.extension, r.trailer), len(first)
}

func body(f framing, parts []string, extension string, trailer []framingtest.Field) string {
	if f != byChunks {
		return strings.Join(parts, "")
	}
	var b strings.Builder
	for _, p := range parts {
		b.WriteString(chunk(p, extension))
	}
	b.WriteString("0\r\n")
	writeFields(&b, trailer)
	b.WriteString("\r\n")
	return b.String()
}

func chunk(p, extension string) string { return fmt.Sprintf("%x%s\r\n%s\r\n", len(p), extension, p) }

func writeFields(b *strings.Builder, fields []framingtest.Field) {
	for _, f := range fields {
		b.WriteString(f.Name + ": " + f.Value + "\r\n")
	}
}

// bodyAt returns how much of the body the app is sure to have when the first n bytes behind the
// head were sent. Where a chunk has come in part, those before it may be held.
func (r *request) bodyAt(n int) (got int) {
	if r.framing != byChunks {
		return n
	}
	all := len(body(byChunks, r.parts, r.extension, r.trailer))
	if n == all {
		return size(r.parts)
	}
	for _, p := range r.parts {
		if n -= len(chunk(p, r.extension)); n < 0 {
			return 0
		}
		if got += len(p); n == 0 {
			return got
		}
	}
	return 0 // in what ends the body
}

// size is the length of all parts.
func size(parts []string) (n int) {
	for _, p := range parts {
		n += len(p)
	}
	return n
}

// last is the request at which the client ends the connection.
func (p *Plan) last() int { return len(p.requests) - 1 }

// completes reports whether the client sends all of its last request.
func (p *Plan) completes() bool {
	if p.end.how == stays {
		return true
	}
	wire, _ := p.requests[p.last()].wire(strings.Repeat("t", tokenBytes), p.last())
	return p.end.at >= len(wire)
}
